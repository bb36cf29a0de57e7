-- Notifies workers that wait for these lanes; silent when nobody waits, because NOTIFY takes a database-wide lock at
-- commit. Equal payloads of one transaction are sent once. A wake-up can be missed (the check and the commit are
-- apart): waiting workers poll.
-- roles: none
create or replace function fenceline.wake(p_lanes text[]) returns void
language plpgsql as $$
declare
  v_lane text;
  v_now timestamptz := fenceline.clock();
begin
  for v_lane in
    select distinct w.lane from fenceline.waiter w where w.lane = any(p_lanes) and w.until > v_now
  loop
    perform pg_notify('fenceline_ready', v_lane);
  end loop;
end;
$$;

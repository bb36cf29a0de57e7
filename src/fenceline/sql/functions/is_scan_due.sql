-- True about once a second per lane and fleet: then a claim looks below the workers' lower bounds, for jobs that were
-- committed late or given back.
-- roles: none
create or replace function fenceline.is_scan_due(p_lane text, p_now timestamptz) returns boolean
language plpgsql as $$
declare
  v_scanned timestamptz;
begin
  select s.scanned_at into v_scanned from fenceline.lane_state s where s.lane = p_lane;
  if v_scanned > p_now - interval '1 second' then
    return false;
  end if;
  if not found then
    insert into fenceline.lane_state (lane, scanned_at) values (p_lane, p_now) on conflict do nothing;
    return true;
  end if;
  perform 1 from fenceline.lane_state s
  where s.lane = p_lane and (s.scanned_at is null or s.scanned_at <= p_now - interval '1 second')
  for update skip locked;
  if not found then
    return false;
  end if;
  update fenceline.lane_state set scanned_at = p_now where lane = p_lane;
  return true;
end;
$$;

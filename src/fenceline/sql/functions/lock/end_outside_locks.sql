-- Ends blocks of code outside handlers whose lease is over: the fence first (the lease), then their locks and places in
-- line; the next in line is told. A lease that is renewed at this moment is left alone.
--
-- p_step      how far the clock was set (clock_step_for), null: it was not. Leases that were noted before begin anew.
-- Returns how many were ended. Waits for no lease.
-- roles: none
create or replace function fenceline.end_outside_locks(p_step interval) returns integer
language plpgsql as $$
declare
  v_now timestamptz := fenceline.clock();
  v_lease fenceline.lock_lease;
  v_count integer := 0;
begin
  update fenceline.lock_lease h set renewed_at = v_now, lease_until = v_now + make_interval(secs => h.lease_seconds)
  where h.owner = any(array(
    select o.owner from fenceline.lock_lease o
    where o.renewed_at > v_now + interval '1 second'  -- the clock was set back
       or p_step > interval '0' and o.renewed_at < v_now - p_step / 2
    for no key update skip locked));
  for v_lease in
    delete from fenceline.lock_lease h where h.owner = any(array(
      select o.owner from fenceline.lock_lease o where o.lease_until < v_now for update skip locked))
    returning h.*
  loop
    v_count := v_count + 1;
    perform fenceline.release_lock(v_lease.id, v_lease.owner);
  end loop;
  return v_count;
end;
$$;

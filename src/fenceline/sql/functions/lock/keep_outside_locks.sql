-- Renews the leases of blocks of code outside handlers that hold a lock or wait for one. One that is over is renewed too, as
-- long as nobody has ended it: then nobody else has the lock.
-- Returns those that were not renewed: `lost` (the lease was ended), `busy` (somebody holds its row; ask again).
-- Waits for nobody.
-- roles: producer, worker
create or replace function fenceline.keep_outside_locks(p_owners uuid[]) returns table (owner uuid, word text)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_now timestamptz := fenceline.clock();
begin
  return query
  with free as (
    select h.owner from fenceline.lock_lease h where h.owner = any(p_owners) order by h.owner for no key update skip locked
  ), renewed as (
    update fenceline.lock_lease h set renewed_at = v_now, lease_until = v_now + make_interval(secs => h.lease_seconds)
    where h.owner in (select f.owner from free f)
    returning h.owner
  )
  select o, case when exists (select 1 from fenceline.lock_lease h where h.owner = o) then 'busy' else 'lost' end
  from unnest(p_owners) o where o not in (select n.owner from renewed n);
end;
$$;

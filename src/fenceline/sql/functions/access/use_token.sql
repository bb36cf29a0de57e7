-- Who a token speaks for; no row when it is unknown, expired or revoked. Notes, once a minute, that it was used.
-- roles: producer, worker, reader
create or replace function fenceline.use_token(p_hash bytea)
returns table (id integer, actor text, role text, tenant text, permissions text[], own_jobs boolean, all_tenants boolean)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
  v_now timestamptz := fenceline.clock();
begin
  -- "skip locked": two servers may note it at once, and neither should wait for that.
  update fenceline.token set last_used_at = v_now where id = any(array(
    select t.id from fenceline.token t
    where t.hash = p_hash and (t.last_used_at is null or t.last_used_at < v_now - interval '60 seconds')
    for no key update skip locked));
  return query
  -- One that was replaced by its bearer is still the same to others: its runners go on.
  select coalesce(t.family, t.id), t.name, t.role, t.tenant, r.permissions, r.own_jobs and not 'jobs:read_all' = any(r.permissions), r.all_tenants
  from fenceline.token t join fenceline.role r on r.name = t.role
  where t.hash = p_hash and t.revoked_at is null and (t.expires_at is null or t.expires_at > v_now);
end;
$$;

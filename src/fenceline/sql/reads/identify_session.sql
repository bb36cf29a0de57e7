-- Who a session speaks for, as identify_token says it; no row when it has ended, or its token has.
-- roles: producer, worker, reader
create or replace function fenceline.identify_session(p_hash bytea)
returns table (id integer, actor text, role text, tenant text, permissions text[], own_jobs boolean, all_tenants boolean,
               lanes text[], kinds text[])
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select coalesce(t.family, t.id), coalesce(t.name, s.actor), r.name, coalesce(t.tenant, s.tenant), r.permissions,
         r.own_jobs and not 'jobs:read_all' = any(r.permissions), r.all_tenants, t.lanes, t.kinds
  from fenceline.session s
  left join fenceline.token t on t.id = s.token
  join fenceline.role r on r.name = coalesce(t.role, s.role)
  where s.hash = p_hash and s.expires_at > fenceline.clock()
    and (s.token is null
         or t.id is not null and t.revoked_at is null and (t.expires_at is null or t.expires_at > fenceline.clock()));
$$;

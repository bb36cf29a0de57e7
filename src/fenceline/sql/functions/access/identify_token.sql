-- Who a token speaks for, as use_token says it, and the lanes and kinds that it is bound to (null: any).
-- roles: producer, worker, reader
create or replace function fenceline.identify_token(p_hash bytea)
returns table (id integer, actor text, role text, tenant text, permissions text[], own_jobs boolean, all_tenants boolean,
               lanes text[], kinds text[])
language sql security definer set search_path = pg_catalog, pg_temp as $$
  select u.id, u.actor, u.role, u.tenant, u.permissions, u.own_jobs, u.all_tenants, t.lanes, t.kinds
  from fenceline.use_token(p_hash) u join fenceline.token t on t.hash = p_hash;
$$;

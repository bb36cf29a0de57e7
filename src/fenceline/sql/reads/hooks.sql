-- Outgoing webhooks of a tenant (null: of all), without their secrets.
-- roles: reader
create or replace function fenceline.hooks(p_tenant text default null) returns setof jsonb
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select fenceline.hook_json(h) from fenceline.hook h where p_tenant is null or h.tenant = p_tenant order by h.id;
$$;

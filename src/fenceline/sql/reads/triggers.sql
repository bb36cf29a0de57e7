-- Incoming webhooks of a tenant (null: of all) by name, without their secrets.
-- roles: reader
create or replace function fenceline.triggers(p_tenant text default null, p_name text default null) returns setof jsonb
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select fenceline.trigger_json(t) from fenceline.trigger t
  where (p_tenant is null or t.tenant = p_tenant) and (p_name is null or t.name = p_name)
  order by t.name, t.tenant;
$$;

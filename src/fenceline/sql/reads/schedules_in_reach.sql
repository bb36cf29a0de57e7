-- The schedules of a tenant, or the one of that name, by the names that it gave them. Null p_tenant: those of all tenants, by
-- their stored names (find_schedule).
-- roles: producer, worker, reader
create or replace function fenceline.schedules_in_reach(p_tenant text, p_name text default null) returns setof jsonb
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select fenceline.schedule_json(s)
         || case when p_tenant is null then '{}' else jsonb_build_object('name', fenceline.schedule_name(s.name)) end
  from fenceline.schedule s
  where (p_name is null or s.name = (select fenceline.find_schedule(p_name, p_tenant)))
    and (p_tenant is null or coalesce(s.options ->> 'tenant', 'default') = p_tenant)
  order by fenceline.schedule_name(s.name), s.name;
$$;

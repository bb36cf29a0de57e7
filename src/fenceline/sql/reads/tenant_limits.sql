-- How many unfinished jobs tenants may have, and how many the last count found: a row per tenant that has a limit of its
-- own, and one without tenant, the default of all others (null: none).
-- roles: reader
create or replace function fenceline.tenant_limits() returns table (tenant text, max_jobs integer, jobs bigint)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select null, s.max_tenant_jobs, null from fenceline.setting s
  union all
  (select l.tenant, l.max_jobs, coalesce(c.jobs, 0)
   from fenceline.tenant_limit l left join fenceline.tenant_count c on c.tenant = l.tenant
   order by l.tenant);
$$;

-- Sets how many unfinished jobs a tenant may have: more from outside are refused (FL023). Takes effect at once. Audited.
--
-- p_max_jobs  null: no limit of its own any more; for the default: no limit
-- p_tenant    null: the default of every tenant that has none of its own
-- Raises FL002, FL007.
-- roles: admin
create or replace function fenceline.set_tenant_limit(
  p_max_jobs integer,
  p_tenant text default null,
  p_actor text default null
) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_before integer;
begin
  if p_max_jobs < 0 then
    raise exception using errcode = 'FL007',
      message = format('a limit of %s jobs is out of range: use 0 or more, or null for none', p_max_jobs);
  end if;
  select s.max_tenant_jobs into v_before from fenceline.setting s for update;  -- one at a time: the flag is about all
  if p_tenant is null then
    update fenceline.setting set max_tenant_jobs = p_max_jobs;
  else
    perform fenceline.check_name('tenant', p_tenant);
    select l.max_jobs into v_before from fenceline.tenant_limit l where l.tenant = p_tenant;
    delete from fenceline.tenant_limit l where l.tenant = p_tenant;
    insert into fenceline.tenant_limit (tenant, max_jobs) select p_tenant, p_max_jobs where p_max_jobs is not null;
  end if;
  update fenceline.setting
  set limits_tenants = max_tenant_jobs is not null or exists (select 1 from fenceline.tenant_limit);
  -- What was counted before there was a limit, is old.
  perform fenceline.count_tenants(1) from fenceline.setting s where s.limits_tenants;
  perform fenceline.record_event(p_actor, 'tenant.limit', coalesce(p_tenant, 'default'), p_tenant, null,
    jsonb_build_object('max_jobs', v_before), jsonb_build_object('max_jobs', p_max_jobs));
end;
$$;

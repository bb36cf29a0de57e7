-- Counts the unfinished jobs of every tenant, for check_tenant_limit, unless that was done within the interval. One pass
-- over the tables of unfinished jobs: no index by tenant is kept on the hot path for it. A pass that takes long is made
-- less often, so that at most a twentieth of the time goes into counting.
-- Needs READ COMMITTED (FL016).
-- roles: worker
create or replace function fenceline.count_tenants(p_interval_seconds double precision default 1) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_began timestamptz := clock_timestamp();  -- how long it takes, also where a test has stopped the clock
  v_took double precision;
begin
  perform fenceline.require_read_committed('count_tenants');
  select m.took_seconds into v_took from fenceline.maintenance m where m.task = 'tenants';
  if not fenceline.is_due('tenants', greatest(p_interval_seconds, 20 * v_took)) then
    return;
  end if;
  with counted as materialized (
    select u.tenant, count(*) as jobs
    from (select r.tenant from fenceline.ready r
          union all
          select t.tenant from fenceline.timer t
          union all
          select h.tenant from fenceline.held h
          union all
          -- A probe for each: a join may be planned as a scan of all jobs there ever were.
          select (select j.tenant from fenceline.job j where j.id = a.job_id) from fenceline.running a) u
    where u.tenant is not null
    group by u.tenant
  ), gone as (
    delete from fenceline.tenant_count c where c.tenant not in (select n.tenant from counted n)
  )
  insert into fenceline.tenant_count as c (tenant, jobs) select n.tenant, n.jobs from counted n
  on conflict (tenant) do update set jobs = excluded.jobs where c.jobs <> excluded.jobs;
  update fenceline.maintenance m set took_seconds = extract(epoch from clock_timestamp() - v_began)
  where m.task = 'tenants';
end;
$$;

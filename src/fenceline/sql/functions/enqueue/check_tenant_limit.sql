-- Refuses jobs from outside that would give a tenant more unfinished ones than an operator allows. Called only where
-- setting.limits_tenants says that there is a limit; children, schedules and what is there already are let through.
--
-- p_more      so many jobs are about to be made
-- Two probes, whatever the queue holds: the counting is maintenance's (count_tenants). So a limit is soft by what is
-- enqueued between two counts. Where no worker and no server does the maintenance, an enqueue counts every ten seconds;
-- not under REPEATABLE READ, where noting it could fail.
-- Returns true. Raises FL023, with the tenant as detail.
-- roles: none
create or replace function fenceline.check_tenant_limit(p_tenant text, p_more integer) returns boolean
language plpgsql as $$
declare
  v_most integer;
  v_jobs bigint;
  v_counted_at timestamptz;
begin
  select coalesce(l.max_jobs, s.max_tenant_jobs), m.ran_at into v_most, v_counted_at
  from fenceline.setting s
  left join fenceline.tenant_limit l on l.tenant = p_tenant
  left join fenceline.maintenance m on m.task = 'tenants';
  if v_most is null then
    return true;
  end if;
  if (v_counted_at between fenceline.clock() - interval '10 seconds' and fenceline.clock()) is not true
     and current_setting('transaction_isolation') = 'read committed' then
    perform fenceline.count_tenants(10);
  end if;
  select c.jobs into v_jobs from fenceline.tenant_count c where c.tenant = p_tenant;
  if coalesce(v_jobs, 0) + p_more > v_most then
    raise exception using errcode = 'FL023', detail = p_tenant,
      message = format('tenant %L has %s unfinished jobs, and %s more would be over its limit of %s', p_tenant,
                       coalesce(v_jobs, 0), p_more, v_most),
      hint = 'Wait until some have ended, or ask an operator for a higher limit.';
  end if;
  return true;
end;
$$;

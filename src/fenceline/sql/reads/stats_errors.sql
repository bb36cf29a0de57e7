-- Of the jobs that ended within the last p_seconds, by kind: how many, how, and which share failed or had errors.
-- roles: reader
create or replace function fenceline.stats_errors(
  p_tenant text default null,
  p_created_by text default null,
  p_seconds double precision default 3600,
  p_most integer default 200000
) returns jsonb
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  with ended as (select * from fenceline.ended_jobs(p_seconds, p_most)), counted as (
    select e.kind, count(*) as ended, count(*) filter (where e.outcome = 'succeeded') as succeeded,
           count(*) filter (where e.outcome = 'succeeded_with_errors') as succeeded_with_errors,
           count(*) filter (where e.outcome = 'failed') as failed,
           count(*) filter (where e.outcome = 'cancelled') as cancelled,
           round((count(*) filter (where e.outcome in ('failed', 'succeeded_with_errors')))::numeric / count(*), 6)
             as error_rate
    from ended e
    where (p_tenant is null or e.tenant = p_tenant) and (p_created_by is null or e.created_by = p_created_by)
    group by e.kind
  )
  select jsonb_build_object(
    'items', coalesce((select jsonb_agg(to_jsonb(c) order by c.error_rate desc, c.ended desc, c.kind) from counted c), '[]'),
    'is_complete', (select count(*) < p_most from ended));
$$;

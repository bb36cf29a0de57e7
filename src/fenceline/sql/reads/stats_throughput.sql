-- Jobs that ended within the last p_seconds, per tenant and span of p_bucket_seconds, oldest span first.
-- roles: reader
create or replace function fenceline.stats_throughput(
  p_tenant text default null,
  p_created_by text default null,
  p_seconds double precision default 3600,
  p_bucket_seconds double precision default 60,
  p_most integer default 200000
) returns jsonb
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  with ended as (select * from fenceline.ended_jobs(p_seconds, p_most)), counted as (
    select e.tenant,
           to_timestamp(floor(extract(epoch from e.ended_at) / p_bucket_seconds) * p_bucket_seconds) as at,
           count(*) as ended, count(*) filter (where e.outcome = 'succeeded') as succeeded,
           count(*) filter (where e.outcome = 'succeeded_with_errors') as succeeded_with_errors,
           count(*) filter (where e.outcome = 'failed') as failed,
           count(*) filter (where e.outcome = 'cancelled') as cancelled
    from ended e
    where (p_tenant is null or e.tenant = p_tenant) and (p_created_by is null or e.created_by = p_created_by)
    group by 1, 2
  )
  select jsonb_build_object(
    'items', coalesce((select jsonb_agg(to_jsonb(c) order by c.at, c.tenant) from counted c), '[]'),
    'is_complete', (select count(*) < p_most from ended));
$$;

-- The jobs that take or took longest, of those that run now and those that ended within the last p_seconds.
-- roles: reader
create or replace function fenceline.stats_slow(
  p_tenant text default null,
  p_created_by text default null,
  p_seconds double precision default 3600,
  p_kinds text[] default null,
  p_limit integer default 20,
  p_most integer default 200000
) returns jsonb
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  with ended as (select * from fenceline.ended_jobs(p_seconds, p_most)), ran as (
    select e.job_id, e.kind, e.lane, e.tenant, e.created_by, e.outcome as status, e.started_at, e.ended_at as finished_at,
           e.worker_id, e.seconds
    from ended e where e.seconds is not null
    union all
    select r.job_id, j.kind, r.lane, j.tenant, j.created_by, case when r.started_at is null then 'claimed' else 'running' end,
           coalesce(r.started_at, r.claimed_at), null, r.worker_id,
           extract(epoch from fenceline.clock() - coalesce(r.started_at, r.claimed_at))::double precision
    from fenceline.running r join fenceline.job j on j.id = r.job_id
  ), slowest as (
    select n.* from ran n
    where (p_tenant is null or n.tenant = p_tenant) and (p_created_by is null or n.created_by = p_created_by)
      and (p_kinds is null or n.kind = any(p_kinds))
    order by n.seconds desc, n.job_id limit p_limit
  )
  select jsonb_build_object(
    'items', coalesce((
      select jsonb_agg(jsonb_build_object(
               'id', fenceline.public_id(s.job_id), 'kind', s.kind, 'lane', s.lane, 'tenant', s.tenant, 'status', s.status,
               'started_at', s.started_at, 'finished_at', s.finished_at, 'worker', w.name, 'seconds', s.seconds)
             order by s.seconds desc, s.job_id)
      from slowest s left join fenceline.worker w on w.id = s.worker_id), '[]'),
    'is_complete', (select count(*) < p_most from ended));
$$;

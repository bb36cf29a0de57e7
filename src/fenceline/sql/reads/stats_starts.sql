-- How long the jobs that were started within the last p_seconds had waited for it, per span of p_bucket_seconds, oldest span
-- first: the median and the 95th percentile. Counted from the enqueue, or from run_at where that is later; first attempts
-- that have ended, so that what runs now comes later.
-- roles: reader
create or replace function fenceline.stats_starts(
  p_tenant text default null,
  p_created_by text default null,
  p_seconds double precision default 3600,
  p_bucket_seconds double precision default 60,
  p_most integer default 200000
) returns jsonb
language sql stable security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off set jit = off as $$
  with started as (
    select h.job_id, coalesce(h.started_at, h.claimed_at) as at
    from (select * from fenceline.history f
          where f.ended_at > fenceline.clock() - make_interval(secs => p_seconds) limit p_most) h
    where h.number = 1 and h.claimed_at is not null
  ), waited as (
    select to_timestamp(floor(extract(epoch from s.at) / p_bucket_seconds) * p_bucket_seconds) as at,
           greatest(extract(epoch from s.at - greatest(fenceline.id_time(j.id), j.run_at)), 0)::double precision as seconds
    from started s join fenceline.job j on j.id = s.job_id
    where s.at > fenceline.clock() - make_interval(secs => p_seconds)
      and (p_tenant is null or j.tenant = p_tenant) and (p_created_by is null or j.created_by = p_created_by)
  ), counted as (
    select w.at, count(*) as started, percentile_cont(0.5) within group (order by w.seconds) as p50_seconds,
           percentile_cont(0.95) within group (order by w.seconds) as p95_seconds
    from waited w group by w.at
  )
  select jsonb_build_object(
    'items', coalesce((select jsonb_agg(to_jsonb(c) order by c.at) from counted c), '[]'),
    'is_complete', (select count(*) < p_most from started));
$$;

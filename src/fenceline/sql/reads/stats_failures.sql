-- What the jobs failed with that failed for good within the last p_seconds, most frequent first: by kind, the error's type or
-- code, and its message with numbers left out; with the last of these jobs.
-- roles: reader
create or replace function fenceline.stats_failures(
  p_tenant text default null,
  p_created_by text default null,
  p_seconds double precision default 3600,
  p_limit integer default 20,
  p_most integer default 200000
) returns jsonb
language sql stable security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off set jit = off as $$
  with failed as (
    select h.job_id, h.ended_at, h.error
    from (select * from fenceline.history f
          where f.final and f.outcome = 'failed' and f.ended_at > fenceline.clock() - make_interval(secs => p_seconds)
          limit p_most) h
  ), grouped as (
    select j.kind, f.error ->> 'type' as type, f.error ->> 'code' as code,
           left((array_agg(f.error ->> 'message' order by f.ended_at desc))[1], 500) as message, count(*) as count,
           fenceline.public_id((array_agg(f.job_id order by f.ended_at desc))[1]) as last_job, max(f.ended_at) as last_at
    from failed f join fenceline.job j on j.id = f.job_id
    where (p_tenant is null or j.tenant = p_tenant) and (p_created_by is null or j.created_by = p_created_by)
    group by j.kind, 2, 3, regexp_replace(left(f.error ->> 'message', 200), '[0-9]+', '#', 'g')
    order by count(*) desc, max(f.ended_at) desc limit p_limit
  )
  select jsonb_build_object(
    'items', coalesce((select jsonb_agg(to_jsonb(g) order by g.count desc, g.last_at desc) from grouped g), '[]'),
    'is_complete', (select count(*) < p_most from failed));
$$;

-- Jobs that ended per second in each lane over the last p_seconds; a lane where none did has no row. Of one tenant, or
-- (null) of all.
--
-- Looks at 20,000 ends at most, so that a screen that asks every second costs a busy queue little; where there were more,
-- the rates are of those, scaled to the time they cover.
-- roles: producer, worker, reader
create or replace function fenceline.lane_rates(p_seconds double precision default 10, p_tenant text default null) returns table (
  lane text, per_second double precision
)
language sql stable security definer set search_path = pg_catalog, pg_temp
-- As in list_jobs: a plan that does not depend on statistics.
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off
as $$
  with ended as materialized (
    select h.job_id, h.ended_at from fenceline.history h
    -- A subselect, not the volatile clock itself: only then can the range index on ended_at be used.
    where h.final and h.ended_at > (select fenceline.clock() - make_interval(secs => p_seconds))
    limit 20000
  ), covered as (
    select case when count(*) < 20000 then p_seconds
                else greatest(extract(epoch from max(e.ended_at) - min(e.ended_at)), 0.001) end as seconds
    from ended e
  )
  select j.lane, count(*) / (select c.seconds from covered c)::double precision
  -- Row by row: only so does every server skip the partitions that cannot have the job.
  from ended e join fenceline.job j on j.id = e.job_id
  where p_tenant is null or j.tenant = p_tenant
  group by j.lane;
$$;

-- The fleet in figures, for metrics, as JSON.
--
--   workers     how many are `live`, `blocked` (their event loop does not turn) or `lost` (lease over, not swept); of runners too.
--               Servers that deliver webhooks do none of the users' jobs: they do not count
--   jobs        how many are scheduled, waiting, awaiting_approval; counted up to 100,000 each
--   draining    whether the system refuses new jobs
--   until       the moment up to which ends are counted: a second ago, so that those commit that are under way
--   ended       since p_since (null: nothing): [lane, status, jobs]
--   attempts    since then: how many attempts were `lost` or `crashed`, and how many jobs ended as `quarantined`
--   waits       since then, of first attempts that ended: [lane, kind, seconds in all, [jobs per span of p_bounds]], how long jobs
--               had waited for their start, from the enqueue or run_at
-- Looks at 50,000 ends at most.
-- roles: reader
create or replace function fenceline.measure_fleet(
  p_since timestamptz default null,
  p_bounds double precision[] default array[1]::double precision[]
) returns jsonb
language sql stable security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off set jit = off as $$
  with moment as (select fenceline.clock() as now, greatest(fenceline.clock() - interval '1 second', p_since) as until),
  past as materialized (
    select h.job_id, h.final, h.outcome, h.number, h.claimed_at, h.started_at, h.error ->> 'code' as code
    from fenceline.history h
    where h.ended_at > p_since and h.ended_at <= (select m.until from moment m) limit 50000
  ), known as (
    select p.*, j.lane, j.kind,
           greatest(extract(epoch from coalesce(p.started_at, p.claimed_at) - greatest(fenceline.id_time(j.id), j.run_at)), 0)::double precision
             as waited
    -- Row by row: only so does every server skip the partitions that cannot have the job.
    from past p cross join lateral (select j.id, j.lane, j.kind, j.run_at from fenceline.job j where j.id = p.job_id) j
  ), spans as (
    select k.lane, k.kind, width_bucket(k.waited, p_bounds) as span, count(*) as jobs, sum(k.waited) as seconds
    from known k where k.number = 1 and k.claimed_at is not null group by 1, 2, 3
  )
  select jsonb_build_object(
    'workers', (select jsonb_build_object(
        'live', count(*) filter (where w.lease_until >= m.now and w.blocked_at is null),
        'blocked', count(*) filter (where w.lease_until >= m.now and w.blocked_at is not null),
        'lost', count(*) filter (where w.lease_until < m.now))
      from fenceline.worker w cross join moment m
      where w.stopped_at is null and w.lanes is distinct from array['webhooks']),
    'jobs', jsonb_build_object(
      'scheduled', (select count(*) from (select 1 from fenceline.timer limit 100000) t),
      'waiting', (select count(*) from (select 1 from fenceline.held h
                                        where h.waiting_for in ('dependencies', 'key', 'signal') limit 100000) h),
      'awaiting_approval', (select count(*) from (select 1 from fenceline.held h
                                                  where h.waiting_for = 'approval' limit 100000) h)),
    'draining', (select s.draining from fenceline.setting s),
    'until', (select m.until from moment m),
    'ended', coalesce((select jsonb_agg(jsonb_build_array(e.lane, e.outcome, e.jobs)) from (
        select k.lane, k.outcome, count(*) as jobs from known k where k.final group by 1, 2) e), '[]'),
    'attempts', (select jsonb_build_object(
        'lost', count(*) filter (where p.outcome = 'lost' or p.code = 'lost'),
        'crashed', count(*) filter (where p.outcome = 'crashed' or p.code = 'quarantined'),
        'quarantined', count(*) filter (where p.code = 'quarantined')) from past p),
    'waits', coalesce((select jsonb_agg(jsonb_build_array(g.lane, g.kind, g.seconds, g.counts)) from (
        select s.lane, s.kind, sum(s.seconds) as seconds,
               (select array_agg(coalesce((select t.jobs from spans t
                                           where t.lane = s.lane and t.kind = s.kind and t.span = b), 0) order by b)
                from generate_series(0, cardinality(p_bounds)) b) as counts
        from spans s group by s.lane, s.kind) g), '[]'));
$$;

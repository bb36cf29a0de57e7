-- Lanes whose jobs wait for p_seconds (a minute at least) and are served: `stands` when nothing of the lane was claimed or
-- ended meanwhile; else `grows` when more came and still wait than ended.
-- Lanes that are drained, without slots, full, or whose workers are missing have checks of their own.
-- roles: reader
create or replace function fenceline.stalled_lanes(p_seconds double precision) returns table (
  reason text, lane text, depth bigint, oldest_age_seconds double precision, example text
)
language sql stable security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off set jit = off as $$
  with span as (select greatest(p_seconds, 60) as seconds, fenceline.clock() - make_interval(secs => greatest(p_seconds, 60)) as since),
  late as (
    select n.name, n.depth, n.oldest_age_seconds, fenceline.id_at(s.since) as since_id, s.since
    from fenceline.lanes() n cross join span s
    where n.enabled and n.oldest_age_seconds >= s.seconds and coalesce(n.in_use < n.slots, true)
      and exists (select 1 from fenceline.worker w
                  where w.stopped_at is null and w.lease_until >= fenceline.clock()
                    and (w.lanes is null or n.name = any(w.lanes)))
  ), ended as (
    select e.lane, count(*) as jobs from fenceline.ended_jobs((select s.seconds from span s), 100000) e
    where exists (select 1 from late) group by e.lane
  ), judged as (
    select l.*, coalesce(e.jobs, 0) as ended,
           exists (select 1 from fenceline.running r where r.lane = l.name and r.claimed_at >= l.since) as claims,
           (select count(*) from (select 1 from fenceline.ready r
                                  where r.lane = l.name and r.job_id >= l.since_id limit 100000) c) as came
    from late l left join ended e on e.lane = l.name
  )
  select case when j.ended = 0 and not j.claims then 'stands' else 'grows' end, j.name, j.depth, j.oldest_age_seconds,
         fenceline.public_id((select r.job_id from fenceline.ready r where r.lane = j.name
                              order by r.lane, r.priority desc, r.seq limit 1))
  from judged j
  where (j.ended = 0 and not j.claims) or j.came > j.ended
  order by j.name;
$$;

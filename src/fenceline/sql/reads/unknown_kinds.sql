-- Kinds of queued jobs that none of the live workers of their lane knows, though there are some; of jobs that have been
-- claimable for p_seconds. Looks at the first 10,000 jobs of every lane.
-- roles: reader
create or replace function fenceline.unknown_kinds(p_seconds double precision) returns table (
  lane text, kind text, jobs bigint, example text
)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  with live as (
    select w.lanes, w.kinds from fenceline.worker w where w.stopped_at is null and w.lease_until >= fenceline.clock()
  ), queued as (
    select n.name as lane, r.kind, count(*) as jobs, min(r.job_id) as first
    from fenceline.lane n
    cross join lateral (select r.kind, r.job_id from fenceline.ready r where r.lane = n.name
                        order by r.lane, r.priority desc, r.seq limit 10000) r
    where n.enabled and fenceline.id_time(r.job_id) <= fenceline.clock() - make_interval(secs => p_seconds)
    group by 1, 2
  )
  select q.lane, q.kind, q.jobs, fenceline.public_id(q.first)
  from queued q
  where exists (select 1 from live l where l.lanes is null or q.lane = any(l.lanes))
    and not exists (select 1 from live l where (l.lanes is null or q.lane = any(l.lanes))
                                           and (l.kinds is null or q.kind = any(l.kinds)));
$$;

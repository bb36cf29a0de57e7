-- Jobs that nobody can run, and why:
--   no_slots     queued in a lane that has 0 slots
--   no_lane      in a lane that does not exist
--   dependency   waits for jobs of which none is on its way any more
--   nowhere      neither on its way nor ended: a row is missing (looks at the newest 100,000 jobs)
-- roles: reader
create or replace function fenceline.stuck_jobs() returns table (reason text, subject text, jobs bigint, example text)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select 'no_slots', n.name, count(*), fenceline.public_id(min(r.job_id))
  from fenceline.lane n join fenceline.ready r on r.lane = n.name
  where n.slots = 0 and n.enabled group by n.name
  union all
  select 'no_lane', l.lane, count(*), fenceline.public_id(min(l.job_id))
  from (select lane, job_id from fenceline.ready union all select lane, job_id from fenceline.timer
        union all select lane, job_id from fenceline.held) l
  where not exists (select 1 from fenceline.lane n where n.name = l.lane) group by l.lane
  union all
  select 'dependency', '', count(*), fenceline.public_id(min(h.job_id))
  from fenceline.held h
  where h.waiting_for = 'dependencies'
    and not exists (select 1 from fenceline.dependency_check c where c.waiter_id = h.job_id)
    and not exists (select 1 from fenceline.dependency d where d.waiter_id = h.job_id and fenceline.is_live(d.after_id))
  having count(*) > 0
  union all
  select 'nowhere', '', count(*), fenceline.public_id(min(j.id))
  from (select id from fenceline.job order by id desc limit 100000) j
  where not exists (select 1 from fenceline.history h where h.job_id = j.id and h.final) and not fenceline.is_live(j.id)
  having count(*) > 0;
$$;

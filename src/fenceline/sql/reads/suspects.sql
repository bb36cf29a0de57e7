-- Jobs that shared a process with a crash, and run alone from then on: by lane and kind, how many wait for a process of their
-- own, for how long the first has, how many run in one; and whether a live worker of the lane has the kind.
-- roles: reader
create or replace function fenceline.suspects() returns table (
  lane text, kind text, waiting bigint, running bigint, oldest_age_seconds double precision, example text, served boolean
)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  with suspect as (
    select r.lane, r.kind, r.job_id, r.seq from fenceline.ready r where r.deaths is not null
    union all
    select r.lane, j.kind, r.job_id, null from fenceline.running r join fenceline.job j on j.id = r.job_id
    where r.deaths is not null
  )
  select s.lane, s.kind, count(s.seq), count(*) - count(s.seq),
         extract(epoch from fenceline.clock() - fenceline.id_time(min(s.seq)))::double precision,
         fenceline.public_id(min(s.job_id)),
         exists (select 1 from fenceline.worker w
                 where w.stopped_at is null and w.lease_until >= fenceline.clock()
                   and (w.lanes is null or s.lane = any(w.lanes)) and (w.kinds is null or s.kind = any(w.kinds)))
  from suspect s group by s.lane, s.kind order by s.lane, s.kind;
$$;

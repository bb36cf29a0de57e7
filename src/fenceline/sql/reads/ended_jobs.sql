-- Jobs that ended within the last seconds, found by the range index of history; at most p_most of them are looked at.
-- `seconds` is how long the last attempt took; null for a job that ended unclaimed.
-- roles: none
create or replace function fenceline.ended_jobs(p_seconds double precision, p_most integer)
returns table (job_id bigint, outcome text, ended_at timestamptz, seconds double precision, worker_id integer,
               kind text, lane text, tenant text, created_by text, started_at timestamptz)
language sql stable set enable_seqscan = off set jit = off as $$
  select h.job_id, h.outcome, h.ended_at,
         extract(epoch from h.ended_at - coalesce(h.started_at, h.claimed_at))::double precision, h.worker_id,
         j.kind, j.lane, j.tenant, j.created_by, coalesce(h.started_at, h.claimed_at)
  from (select * from fenceline.history f
        where f.final and f.ended_at > fenceline.clock() - make_interval(secs => p_seconds) limit p_most) h
  join fenceline.job j on j.id = h.job_id;
$$;

-- What a worker must know of attempts that it is running: `stale` (the attempt is gone: stop, nothing it writes will be
-- accepted) or `cancel` (it was asked to stop, and has so many seconds of grace left). No row: all is well.
-- roles: worker
create or replace function fenceline.check_attempts(p_job_ids bigint[], p_attempt_ids uuid[])
returns table (attempt_id uuid, word text, grace_seconds double precision)
language sql stable security definer set search_path = pg_catalog, pg_temp
-- As in claim_jobs: a plan that does not depend on statistics.
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off
as $$
  select g.attempt_id, case when r.job_id is null then 'stale' else 'cancel' end,
         greatest(extract(epoch from r.cancel_deadline - fenceline.clock()), 0)::double precision
  from unnest(p_job_ids, p_attempt_ids) g(job_id, attempt_id)
  left join fenceline.running r on r.job_id = g.job_id and r.attempt_id = g.attempt_id
  where r.job_id is null or r.cancel_deadline is not null;
$$;

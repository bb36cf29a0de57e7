-- Claims the very jobs that messages have named, as many of them as claim_jobs would give out: every rule of a claim holds, and
-- what is claimed already, gone, or not allowed now is left out. That message is dropped; a job that still waits is sent
-- again (take_messages).
--
-- Answers as claim_jobs, and raises as that. Suspects are not among the answers: claim_jobs with p_alone finds them.
-- roles: worker
create or replace function fenceline.claim_named_jobs(
  p_worker_id integer,
  p_lane text,
  p_job_ids bigint[],
  p_kinds text[] default null,
  p_request_id uuid default null
) returns table (
  job_id bigint, attempt_id uuid, token bigint, number smallint, kind text, args json, tenant text, priority smallint,
  seq bigint, max_attempts smallint, timeout_seconds double precision, alone boolean, more jsonb
)
language plpgsql security definer set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off
as $$
begin
  return query
  select * from fenceline.claim_jobs(p_worker_id, p_lane, cardinality(p_job_ids), p_kinds, p_request_id,
                                     p_floor_priorities => '{}', p_floor_seqs => p_job_ids);
  delete from fenceline.message m
  where m.job_id = any(p_job_ids) and not exists (select 1 from fenceline.ready r where r.job_id = m.job_id);
end;
$$;

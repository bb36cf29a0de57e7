-- Claims jobs of one lane for a runner (claim_jobs) and returns them as its server answers: one JSON document per attempt,
-- with the job as the view `jobs` shows it.
--
-- p_alone     claim one suspect, to be run alone; nothing unless the runner holds no other attempt
-- Raises as own_runner and claim_jobs. One lane per transaction: two claims that took the locks of several lanes in
-- different order would wait for each other.
-- roles: worker
create or replace function fenceline.claim_for_runner(
  p_runner_id integer,
  p_owner text,
  p_lane text,
  p_limit integer,
  p_kinds text[] default null,
  p_request_id uuid default null,
  p_alone boolean default false
) returns setof json
language plpgsql security definer set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
declare
  v_claim record;
begin
  perform fenceline.own_runner(p_runner_id, p_owner);
  if p_alone and exists (select 1 from fenceline.running r where r.worker_id = p_runner_id) then
    return;
  end if;
  for v_claim in
    select * from fenceline.claim_jobs(p_runner_id, p_lane, p_limit, p_kinds, p_request_id, null, p_alone)
  loop
    return query
    select json_build_object(
      'job', json_build_object(
        'id', fenceline.public_id(j.id), 'kind', j.kind, 'status', 'claimed', 'waiting_for', null, 'lane', r.lane,
        'priority', r.priority, 'tenant', j.tenant, 'args', j.args, 'labels', j.labels, 'attempt', r.number,
        'max_attempts', j.max_attempts, 'created_at', fenceline.id_time(j.id), 'created_by', j.created_by,
        'run_at', j.run_at, 'claimed_at', r.claimed_at, 'started_at', null, 'finished_at', null, 'worker', w.name,
        'phase', null, 'progress', null, 'result', null, 'error', null, 'errors', null, 'cancel_requested_at', null,
        'retry_of', fenceline.public_id(j.retry_of), 'parent', fenceline.public_id(j.parent),
        'delivery', coalesce(j.delivery, 'postgres'), 'backend_job_id', j.backend_job_id),
      'attempt_id', r.attempt_id, 'token', r.token, 'number', r.number, 'lease_seconds', w.lease_seconds,
      'timeout_seconds', j.timeout_seconds, 'alone', v_claim.alone, 'details', v_claim.more)
    from fenceline.running r
    join fenceline.job j on j.id = r.job_id
    join fenceline.worker w on w.id = r.worker_id
    where r.job_id = v_claim.job_id;
  end loop;
end;
$$;

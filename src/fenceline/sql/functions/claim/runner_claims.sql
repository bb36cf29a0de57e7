-- Attempts that were claimed just now, as the server tells their runner: one JSON document each, with the job as the view
-- `jobs` shows it.
-- roles: none
create or replace function fenceline.runner_claims(p_job_ids bigint[], p_alone boolean[], p_details jsonb[]) returns setof json
language sql stable as $$
  select json_build_object(
    'job', json_build_object(
      'id', fenceline.public_id(j.id), 'kind', j.kind, 'status', 'claimed', 'waiting_for', null, 'lane', r.lane,
      'priority', r.priority, 'tenant', j.tenant, 'args', j.args, 'labels', j.labels, 'attempt', r.number,
      'max_attempts', j.max_attempts, 'created_at', fenceline.id_time(j.id), 'created_by', j.created_by,
      'run_at', j.run_at, 'claimed_at', r.claimed_at, 'started_at', null, 'finished_at', null, 'worker', w.name,
      'phase', null, 'progress', null, 'result', null, 'error', null, 'errors', null, 'cancel_requested_at', null,
      'retry_of', fenceline.public_id(j.retry_of), 'parent', fenceline.public_id(j.parent),
      'delivery', coalesce(j.delivery, 'postgres'),
      'backend_job_id', fenceline.message_id(j.id, j.delivery, j.backend_job_id), 'runner', j.runner,
      'snapshot_hash', j.snapshot_hash, 'requires_hash', j.requires_hash, 'identity', j.identity,
      -- Most jobs come after none, and the call is not inlined.
      'after', case when j.after is not null then fenceline.public_ids(j.after) end,
      'key', j.key, 'key_limit', j.key_limit, 'resource_lock', j.resource_lock, 'dedupe_key', j.dedupe_key,
      'expires_at', j.expires_at, 'timeout', j.timeout_seconds, 'group', j.group_name, 'retry', j.retry),
    'attempt_id', r.attempt_id, 'token', r.token, 'number', r.number, 'lease_seconds', w.lease_seconds,
    'timeout_seconds', j.timeout_seconds, 'alone', c.alone, 'details', c.details)
  from unnest(p_job_ids, p_alone, p_details) with ordinality c(job_id, alone, details, place)
  join fenceline.running r on r.job_id = c.job_id
  join fenceline.job j on j.id = r.job_id
  join fenceline.worker w on w.id = r.worker_id
  order by c.place;
$$;

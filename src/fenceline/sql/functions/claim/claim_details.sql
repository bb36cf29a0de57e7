-- What a handler may want to know of its job beyond kind, args and tenant.
-- roles: none
create or replace function fenceline.claim_details(p_job_id bigint) returns jsonb
language sql stable as $$
  select jsonb_strip_nulls(jsonb_build_object(
    'labels', j.labels, 'created_by', j.created_by, 'expires_at', j.expires_at, 'key', j.key, 'key_limit', j.key_limit,
    'dedupe_key', j.dedupe_key, 'retry', j.retry,
    'snapshot_hash', j.snapshot_hash, 'requires_hash', j.requires_hash, 'identity', j.identity, 'after', j.after,
    'group', j.group_name, 'retry_of', j.retry_of, 'parent', j.parent, 'resource_lock', j.resource_lock,
    'run_at', j.run_at, 'traceparent', j.traceparent, 'runner', j.runner))
    || case when j.snapshot is null then '{}' else jsonb_build_object('snapshot', j.snapshot) end
  from fenceline.job j where j.id = p_job_id;
$$;

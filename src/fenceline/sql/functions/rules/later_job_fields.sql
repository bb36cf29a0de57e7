-- What the view `jobs` has learned since version 0.1, whose clients know of nothing else, and the long `snapshot`.
-- roles: none
create or replace function fenceline.later_job_fields() returns text[]
language sql immutable parallel safe as $$
  select array['job_id', 'snapshot', 'runner', 'snapshot_hash', 'requires_hash', 'identity', 'after', 'key', 'key_limit',
               'resource_lock', 'dedupe_key', 'expires_at', 'timeout', 'group', 'retry'];
$$;

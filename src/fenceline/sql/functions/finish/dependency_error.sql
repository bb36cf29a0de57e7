-- The error of a job that can no longer run because one it waited for did not succeed.
-- roles: none
create or replace function fenceline.dependency_error(p_after_id bigint) returns jsonb
language sql immutable parallel safe as $$
  select jsonb_build_object('code', 'dependency_failed',
    'message', format('job %s, which this one waited for, did not succeed', fenceline.public_id(p_after_id)),
    'job', fenceline.public_id(p_after_id));
$$;

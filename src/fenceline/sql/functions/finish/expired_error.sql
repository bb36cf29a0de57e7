-- The error of a job that was not started by its expires_at.
-- roles: none
create or replace function fenceline.expired_error(p_expires_at timestamptz) returns jsonb
language sql stable parallel safe as $$
  select jsonb_build_object('code', 'expired', 'message', format('not started by %s', p_expires_at));
$$;

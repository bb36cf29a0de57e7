-- The error of a cancelled job.
-- roles: none
create or replace function fenceline.cancelled_error(p_reason text) returns jsonb
language sql immutable parallel safe as $$
  select jsonb_build_object('code', 'cancelled', 'message', coalesce(p_reason, 'cancelled'));
$$;

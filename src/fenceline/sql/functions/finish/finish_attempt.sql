-- Ends one attempt; parameters as in finish_attempts. Returns accepted, already or stale.
-- roles: worker
create or replace function fenceline.finish_attempt(
  p_job_id bigint,
  p_attempt_id uuid,
  p_outcome text default 'succeeded',
  p_result jsonb default null,
  p_error jsonb default null,
  p_errors jsonb default null,
  p_delay double precision default null,
  p_metadata jsonb default null
) returns text
language sql security definer set search_path = pg_catalog, pg_temp as $$
  select coalesce((
    select f.verdict from fenceline.finish_attempts(array[p_job_id], array[p_attempt_id], array[p_outcome],
      array[p_result], array[p_error], array[p_errors], array[p_delay], null, array[p_metadata]) f), 'accepted');
$$;

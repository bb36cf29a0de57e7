-- Holds a live attempt until the caller's transaction ends, so that what is written there and the attempt's end commit
-- together or not at all. Raises FL012.
-- roles: worker
create or replace function fenceline.lock_attempt(p_job_id bigint, p_attempt_id uuid) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform fenceline.live_attempt(p_job_id, p_attempt_id);
end;
$$;

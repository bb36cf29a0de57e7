-- Announces that a live attempt is about to write a version of a resource. Returns false when a newer version was
-- announced before: whoever gets that must not write. The same version again is fine.
--
-- What follows must not let a newer one in between: hold a lock of the resource. In the transaction that writes, call
-- guard_write instead.
-- Raises FL012, FL007.
-- roles: worker
create or replace function fenceline.guard_newer(
  p_job_id bigint,
  p_attempt_id uuid,
  p_resource text,
  p_version numeric
) returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform fenceline.live_attempt(p_job_id, p_attempt_id);
  return fenceline.guard_version(p_job_id, p_resource, p_version);
end;
$$;

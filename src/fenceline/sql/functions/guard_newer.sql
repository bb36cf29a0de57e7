-- Announces that a live attempt is about to write a version of a resource. Returns false when a newer version was
-- announced before: whoever gets that must not write. The same version again is fine.
--
-- What follows must not let a newer one in between: hold a lock of the resource, or call this in the transaction that
-- writes.
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
  if p_resource is null or length(p_resource) not between 1 and 500 
     or p_version is null or p_version in ('NaN', 'Infinity', '-Infinity') then
    raise exception using errcode = 'FL007',
      message = format('guard %L with version %s is not valid: use a resource of 1 to 500 characters and a number',
                       left(p_resource, 80), p_version);
  end if;
  perform fenceline.live_attempt(p_job_id, p_attempt_id);
  insert into fenceline.guard as g (tenant, resource, version, job_id, at)
  select j.tenant, p_resource, p_version, p_job_id, fenceline.clock() from fenceline.job j where j.id = p_job_id
  on conflict (tenant, resource) do update set version = excluded.version, job_id = excluded.job_id, at = excluded.at
    where g.version <= excluded.version;
  return found;
end;
$$;

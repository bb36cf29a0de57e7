-- Notes a version of a resource, unless a newer one is noted. Returns whether it did. Raises FL007.
-- The row is locked until the transaction ends: who else comes with a version of the resource waits, and then sees whether
-- this one was committed.
-- roles: none
create or replace function fenceline.guard_version(p_job_id bigint, p_resource text, p_version numeric) returns boolean
language plpgsql as $$
begin
  if p_resource is null or length(p_resource) not between 1 and 500
     or p_version is null or p_version in ('NaN', 'Infinity', '-Infinity') then
    raise exception using errcode = 'FL007',
      message = format('guard %L with version %s is not valid: use a resource of 1 to 500 characters and a number',
                       left(p_resource, 80), p_version);
  end if;
  insert into fenceline.guard as g (tenant, resource, version, job_id, at)
  select j.tenant, p_resource, p_version, p_job_id, fenceline.clock() from fenceline.job j where j.id = p_job_id
  on conflict (tenant, resource) do update set version = excluded.version, job_id = excluded.job_id, at = excluded.at
    where g.version <= excluded.version;
  return found;
end;
$$;

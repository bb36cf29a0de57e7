-- As guard_newer, in the transaction that writes the resource and ends the attempt: the version counts when that transaction
-- commits, and not at all when it is rolled back. Somebody with another version of the resource waits for it meanwhile.
-- The attempt is only looked at, not locked: a lock that user code holds would stall the sweep. The end, which comes last, is
-- the fence.
-- Returns false when a newer version was written or announced before. Raises FL012, FL007.
-- roles: worker
create or replace function fenceline.guard_write(
  p_job_id bigint,
  p_attempt_id uuid,
  p_resource text,
  p_version numeric
) returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  if not exists (select 1 from fenceline.running r where r.job_id = p_job_id and r.attempt_id = p_attempt_id) then
    raise exception using errcode = 'FL012',
      message = format('attempt %s of job %s is gone: nothing was changed', p_attempt_id, fenceline.public_id(p_job_id)),
      hint = 'It was reclaimed, cancelled or finished; whoever holds the job now decides.';
  end if;
  return fenceline.guard_version(p_job_id, p_resource, p_version);
end;
$$;

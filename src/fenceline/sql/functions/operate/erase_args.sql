-- Erases the args of a finished job: they are replaced by {"$erased": {"at": …, "by": …}}, and everything else stays. Audited.
-- An unfinished job still needs its args: cancel it first. An erased job cannot be retried (FL055). Erasing again is
-- harmless. What the handler wrote (result, error, logs) and jobs made from this one by retry_job are not touched; the old
-- row is in the files until the next vacuum, and in backups.
-- Raises FL010, FL011 (unfinished).
-- roles: admin
create or replace function fenceline.erase_args(
  p_job_id bigint,
  p_actor text default null,
  p_reason text default null,
  p_tenant text default null
) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_job fenceline.job := fenceline.find_job(p_job_id, p_tenant);
begin
  if not exists (select 1 from fenceline.history h where h.job_id = p_job_id and h.final) then
    perform fenceline.wrong_status(p_job_id, 'erased', 'finished');
  end if;
  update fenceline.job j
  set args = json_build_object('$erased', json_build_object('at', fenceline.clock(), 'by', p_actor))
  where j.id = p_job_id and not fenceline.is_erased(j.args);
  if found then
    perform fenceline.record_event(p_actor, 'job.erase', fenceline.public_id(p_job_id), v_job.tenant, p_reason, null, null);
  end if;
end;
$$;

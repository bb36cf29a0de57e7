-- Deletes a finished job and all that is kept of it. Raises FL010, FL011 (unfinished).
-- roles: admin
create or replace function fenceline.delete_job(
  p_job_id bigint,
  p_actor text default null,
  p_tenant text default null
) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_job fenceline.job := fenceline.find_job(p_job_id, p_tenant);
begin
  if not exists (select 1 from fenceline.history h where h.job_id = p_job_id and h.final) then
    perform fenceline.wrong_status(p_job_id, 'deleted', 'finished');
  end if;
  perform fenceline.record_event(p_actor, 'job.delete', fenceline.public_id(p_job_id), v_job.tenant, null,
    jsonb_build_object('kind', v_job.kind, 'status', fenceline.job_status(p_job_id)), null);
  perform fenceline.forget_jobs(array[p_job_id]);
end;
$$;

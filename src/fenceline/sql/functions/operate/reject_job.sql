-- Rejects a job that awaits approval: it ends as cancelled, code `rejected`, with the reason. Raises FL010, FL011.
-- roles: admin
create or replace function fenceline.reject_job(
  p_job_id bigint,
  p_actor text default null,
  p_reason text default null,
  p_tenant text default null
) returns text
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_job fenceline.job := fenceline.find_job(p_job_id, p_tenant);
begin
  perform 1 from fenceline.held h where h.job_id = p_job_id and h.waiting_for = 'approval' for update;
  if not found then
    perform fenceline.wrong_status(p_job_id, 'rejected', 'awaiting_approval');
  end if;
  perform fenceline.end_waiting(array[p_job_id], 'cancelled',
    jsonb_build_object('code', 'rejected', 'message', coalesce(p_reason, 'rejected')), p_actor);
  perform fenceline.record_event(p_actor, 'job.reject', fenceline.public_id(p_job_id), v_job.tenant, p_reason,
    '{"status": "awaiting_approval"}', '{"status": "cancelled"}');
  return 'cancelled';
end;
$$;

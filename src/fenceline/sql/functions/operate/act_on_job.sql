-- One verb on one job, for somebody bound to a tenant (null: to none) who may reach only what p_created_by enqueued (null:
-- all): the way of HTTP to the verbs. Every rule about the verb is in its own function.
--
-- p_verb      approve reject retry cancel reprioritise run_now erase (the args) remove (cancel what is unfinished, delete what is finished)
-- Returns the job afterwards, the new one for retry; null when it was deleted. Raises what the verb raises, FL007 (verb).
-- roles: admin
create or replace function fenceline.act_on_job(
  p_job_id bigint,
  p_verb text,
  p_actor text,
  p_tenant text,
  p_created_by text default null,
  p_reason text default null,
  p_force boolean default false,
  p_priority integer default null
) returns jsonb
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_job_id bigint := fenceline.visible_job_id(p_job_id, p_tenant, p_created_by);
begin
  case p_verb
    when 'approve' then perform fenceline.approve_job(v_job_id, p_actor, p_reason, p_tenant);
    when 'reject' then perform fenceline.reject_job(v_job_id, p_actor, p_reason, p_tenant);
    when 'cancel' then perform fenceline.cancel_job(v_job_id, p_actor, p_reason, p_force, null, p_tenant);
    when 'retry' then
      select r.job_id into v_job_id from fenceline.retry_job(p_job_id, p_actor, p_tenant) r;
    when 'reprioritise' then
      perform fenceline.reprioritise_job(v_job_id, p_priority, p_actor, p_tenant);
    when 'run_now' then perform fenceline.run_job_now(v_job_id, p_actor, p_reason, p_tenant);
    when 'erase' then perform fenceline.erase_args(v_job_id, p_actor, p_reason, p_tenant);
    when 'remove' then
      begin
        perform fenceline.cancel_job(v_job_id, p_actor, p_reason, p_force, null, p_tenant);
      exception when sqlstate 'FL011' then  -- finished, and so it stays
        perform fenceline.delete_job(v_job_id, p_actor, p_tenant);
        return null;
      end;
    else
      raise exception using errcode = 'FL007', message = format('verb %L is unknown', p_verb);
  end case;
  return fenceline.describe_job(v_job_id);
end;
$$;

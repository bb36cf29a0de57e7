-- Runs a finished job again as a new job with the same args, snapshot and policy, linked by retry_of. What
-- needed approval needs it again, so that nobody goes round it. What waited for other jobs waits for them again, or for
-- their retries (retry_parents). It goes on where the old one stopped: finished steps and the checkpoint are its own from
-- the start. Where its lane is gone, it goes where a new job of its kind would. A delivery of a webhook is
-- made again as well; of our other kinds none is (FL002).
-- Returns the new job's ids. Raises FL008 (a job that it waited for is no longer kept), FL010, FL011 (unfinished, or a job
-- that it waits for did not succeed), FL013 (its resource is locked), FL014 (draining), FL023, FL055 (its args were erased).
-- roles: producer, worker
create or replace function fenceline.retry_job(
  p_job_id bigint,
  p_actor text default null,
  p_tenant text default null,
  out id text,
  out job_id bigint
)
language plpgsql security definer set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan as $$
declare
  v_job fenceline.job := fenceline.find_job(p_job_id, p_tenant);
  v_parents bigint[];
  v_made record;
begin
  if not exists (select 1 from fenceline.history h where h.job_id = p_job_id and h.final) then
    perform fenceline.wrong_status(p_job_id, 'retried', 'finished');
  end if;
  if fenceline.is_erased(v_job.args) then
    raise exception using errcode = 'FL055', message = format(
      'job %s cannot be retried: its args were erased. Enqueue a new job instead', fenceline.public_id(p_job_id));
  end if;
  v_parents := fenceline.retry_parents(v_job);
  v_made := fenceline.insert_jobs(v_job.kind, array[v_job.args], (jsonb_strip_nulls(jsonb_build_object(
      'lane', (select n.name from fenceline.lane n where n.name = v_job.lane), 'priority', v_job.priority,
      'max_attempts', v_job.max_attempts, 'tenant', v_job.tenant,
      'labels', v_job.labels, 'timeout', v_job.timeout_seconds, 'resource_lock', v_job.resource_lock, 'key', v_job.key,
      'key_limit', v_job.key_limit, 'requires_hash', v_job.requires_hash, 'identity', v_job.identity,
      'retry', v_job.retry, 'parent', v_job.parent, 'delivery', v_job.delivery, 'retry_of', p_job_id,
      'needs_approval', v_job.needs_approval, 'group', v_job.group_name, 'runner', v_job.runner,
      'after', case when v_parents is not null
                    then jsonb_build_object('jobs', to_jsonb(v_parents), 'policy', v_job.after_policy) end))
      || case when v_job.snapshot is null then '{}' else jsonb_build_object('snapshot', v_job.snapshot) end)::json,
    p_actor, null, case v_job.kind when 'fenceline.webhook' then 'child' else 'outside' end);
  job_id := v_made.job_ids[1];
  id := fenceline.public_id(job_id);
  perform fenceline.inherit_work(p_job_id, job_id);
  perform fenceline.record_event(p_actor, 'job.retry', fenceline.public_id(p_job_id), v_job.tenant, null,
    jsonb_build_object('status', fenceline.job_status(p_job_id)), jsonb_build_object('job', id));
end;
$$;

-- Cancels a job. Unclaimed: it ends now. Running: the handler is asked to stop, keeps its fence for the grace period,
-- and then (or at once with p_force) the fence is rotated and the job ends.
--
-- p_grace_seconds   null: the setting cancel_grace_seconds
-- Returns the job's status afterwards. A job that is being cancelled already is left as it is, unless forced.
-- Raises FL007 (grace), FL010, FL011 (finished).
-- roles: producer, worker
create or replace function fenceline.cancel_job(
  p_job_id bigint,
  p_actor text default null,
  p_reason text default null,
  p_force boolean default false,
  p_grace_seconds double precision default null,
  p_tenant text default null
) returns text
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_now timestamptz := fenceline.clock();
  v_job fenceline.job := fenceline.find_job(p_job_id, p_tenant);
  v_before text;
  v_after text;
  v_run fenceline.running;
begin
  if p_grace_seconds not between 0 and 1e9 then
    raise exception using errcode = 'FL007',
      message = format('grace of %s seconds is out of range: use 0 to 1000000000', p_grace_seconds);
  end if;
  -- The job may move while we look; it is always somewhere, so look until it is caught.
  loop
    v_before := fenceline.job_status(p_job_id);
    if cardinality(fenceline.end_waiting(array[p_job_id], 'cancelled', fenceline.cancelled_error(p_reason), p_actor))
       > 0 then
      exit;
    end if;
    if p_force then
      delete from fenceline.running r where r.job_id = p_job_id returning * into v_run;
      if found then
        v_run.cancel_actor := coalesce(v_run.cancel_actor, p_actor);
        perform fenceline.end_attempt(v_run, 'cancelled', p_error => fenceline.cancelled_error(p_reason),
                                      p_actor => p_actor);
        perform fenceline.settle(array[p_job_id], v_run.uses);
        perform pg_notify('fenceline_cancel', v_run.worker_id || '/' || v_run.attempt_id);
        exit;
      end if;
    else
      update fenceline.running r
      set cancel_requested_at = coalesce(r.cancel_requested_at, v_now),
          cancel_deadline = coalesce(r.cancel_deadline, v_now + make_interval(secs => coalesce(p_grace_seconds,
            (select s.cancel_grace_seconds from fenceline.setting s)))),
          cancel_actor = coalesce(r.cancel_actor, p_actor), cancel_reason = coalesce(r.cancel_reason, p_reason)
      where r.job_id = p_job_id
      returning * into v_run;
      if found then
        perform pg_notify('fenceline_cancel', v_run.worker_id || '/' || v_run.attempt_id);
        perform fenceline.tell_followers(array[p_job_id]);
        exit;
      end if;
    end if;
    -- Null: it was nowhere at one moment, and then it always will be.
    if v_before is null or exists (select 1 from fenceline.history h where h.job_id = p_job_id and h.final) then
      perform fenceline.wrong_status(p_job_id, 'cancelled', 'unfinished');
    end if;
  end loop;
  v_after := fenceline.job_status(p_job_id);
  perform fenceline.record_event(p_actor, case when p_force then 'job.kill' else 'job.cancel' end,
    fenceline.public_id(p_job_id), v_job.tenant, p_reason, jsonb_build_object('status', v_before),
    jsonb_build_object('status', v_after));
  return v_after;
end;
$$;

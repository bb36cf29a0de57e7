-- Lets a job that waits for its time go on at once: one that is scheduled, sleeps, or waits for its retry. Gates behind that (a key)
-- still hold. Raises FL010, FL011.
-- roles: admin
create or replace function fenceline.run_job_now(
  p_job_id bigint,
  p_actor text default null,
  p_reason text default null,
  p_tenant text default null
) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_job fenceline.job := fenceline.find_job(p_job_id, p_tenant);
  v_now timestamptz := fenceline.clock();
  v_timer fenceline.timer;
begin
  delete from fenceline.timer t where t.job_id = p_job_id returning t.* into v_timer;
  if not found then
    perform fenceline.wrong_status(p_job_id, 'run now', 'scheduled');
  end if;
  update fenceline.wait w set until = v_now where w.job_id = p_job_id;  -- its handler slept
  perform fenceline.place_jobs(array[
    row(v_timer.job_id, fenceline.next_id(), v_timer.priority, v_timer.lane, v_timer.kind, v_timer.tenant, v_timer.number,
        v_timer.token, v_timer.deaths, v_timer.uses, v_now)::fenceline.live]);
  perform fenceline.record_event(p_actor, 'job.run_now', fenceline.public_id(p_job_id), v_job.tenant, p_reason,
    jsonb_build_object('run_at', v_timer.run_at), jsonb_build_object('run_at', v_now));
end;
$$;

-- Puts a job whose handler waits where its wait says: a sleep → timer, a signal → held, with a look whether it has come
-- meanwhile. Without a wait it goes on at once.
-- roles: none
create or replace function fenceline.hold_waiting(p_job fenceline.live) returns void
language plpgsql as $$
declare
  v_wait fenceline.wait;
  v_job fenceline.live := p_job;
begin
  select * into v_wait from fenceline.wait w where w.job_id = p_job.job_id;
  if v_wait.signal is null then
    v_job.run_at := v_wait.until;
    perform fenceline.place_jobs(array[v_job]);
    return;
  end if;
  insert into fenceline.held (job_id, seq, priority, lane, kind, tenant, waiting_for, number, token, deaths, uses)
  values (v_job.job_id, v_job.seq, v_job.priority, v_job.lane, v_job.kind, v_job.tenant, 'signal', v_job.number, v_job.token,
          v_job.deaths, v_job.uses);
  update fenceline.wait w set due_at = w.until where w.job_id = v_job.job_id;
  insert into fenceline.signal_check (id, job_id) values (fenceline.next_id(), v_job.job_id);
  if fenceline.resume_signalled(array[v_job.job_id]) = 0 and exists (select 1 from fenceline.follow) then
    perform fenceline.tell_followers(array[v_job.job_id]);
  end if;
end;
$$;

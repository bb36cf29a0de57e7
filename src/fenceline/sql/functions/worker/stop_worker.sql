-- Signs a worker off: whatever it still holds is released (attempts refunded), and it can claim no more.
--
-- p_fail_kinds   kinds whose handlers chose to fail instead of being run again when their worker is told to stop
-- Attempts whose rows somebody holds (an operator's open transaction) are left: the worker's lease is over then, and the
-- sweep ends them as soon as it can.
-- Returns how many attempts were ended.
-- Lock order: worker row, running rows.
-- Needs READ COMMITTED (FL016).
-- roles: worker
create or replace function fenceline.stop_worker(p_worker_id integer, p_fail_kinds text[] default null) returns integer
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_run fenceline.running;
  v_jobs bigint[];
  v_count integer := 0;
begin
  perform fenceline.require_read_committed('stop_worker');
  -- Waits for a claim in flight (claim_jobs locks the row too), so that its attempts are seen below.
  perform 1 from fenceline.worker w where w.id = p_worker_id for update;
  delete from fenceline.waiter where worker_id = p_worker_id;
  v_jobs := fenceline.lock_attempts(p_worker_id);
  for v_run in
    delete from fenceline.running r where r.job_id = any(v_jobs) and r.worker_id = p_worker_id returning r.*
  loop
    v_count := v_count + 1;
    if (select j.kind from fenceline.job j where j.id = v_run.job_id) = any(p_fail_kinds) then
      perform fenceline.settle_if_final(v_run, fenceline.end_attempt(v_run, 'failed_for_good',
        p_error => '{"code": "shutdown", "message": "Worker received SIGTERM"}'));
    else
      perform fenceline.settle_if_final(v_run, fenceline.end_attempt(v_run, 'released',
        p_metadata => '{"reason": "worker stopped"}'));
    end if;
  end loop;
  -- A lease that was over when the worker stopped is one that was lost (fleet_status): it ends early only for what is left.
  if exists (select 1 from fenceline.running r where r.worker_id = p_worker_id) then
    update fenceline.worker w set lease_until = least(w.lease_until, fenceline.clock())
    where w.id = p_worker_id and w.stopped_at is null;
  else
    update fenceline.worker w set stopped_at = fenceline.clock() where w.id = p_worker_id and w.stopped_at is null;
  end if;
  return v_count;
end;
$$;

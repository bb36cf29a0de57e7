-- The live attempt, locked until the transaction ends: a reclaim waits for us, or we find nothing. It also counts as a
-- sign of life for the lane's stale rule. Raises FL012 when the attempt is gone.
-- Lock order: the running row.
-- roles: none
create or replace function fenceline.live_attempt(p_job_id bigint, p_attempt_id uuid) returns fenceline.running
language plpgsql as $$
declare
  v_run fenceline.running;
begin
  update fenceline.running r set active_at = fenceline.clock()
  where r.job_id = p_job_id and r.attempt_id = p_attempt_id returning r.* into v_run;
  if not found then
    raise exception using errcode = 'FL012',
      message = format('attempt %s of job %s is gone: nothing was changed', p_attempt_id, fenceline.public_id(p_job_id)),
      hint = 'It was reclaimed, cancelled or finished; whoever holds the job now decides.';
  end if;
  return v_run;
end;
$$;

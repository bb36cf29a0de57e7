-- Locks what a worker holds, for whoever ends it. Returns the jobs, but for those that somebody else holds, as an open cancel
-- does.
-- Finishers are done in a moment and are waited for, an open transaction of a user is not.
-- Lock order: running rows by job id.
-- roles: none
create or replace function fenceline.lock_attempts(p_worker_id integer) returns bigint[]
language plpgsql set lock_timeout = '200ms' as $$
begin
  begin
    perform 1 from fenceline.running r where r.worker_id = p_worker_id order by r.job_id for update;
  exception when lock_not_available then null;
  end;
  return array(
    select r.job_id from fenceline.running r where r.worker_id = p_worker_id order by r.job_id for update skip locked);
end;
$$;

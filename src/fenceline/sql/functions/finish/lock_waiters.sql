-- Locks jobs that wait (rows of `held`), for whoever takes something off their lists. Returns those that somebody else
-- holds, as an open approve or cancel does; null: none.
-- Other finishers are done in a moment and are waited for, an open transaction of a user is not.
-- Lock order: held rows by job id.
-- roles: none
create or replace function fenceline.lock_waiters(p_job_ids bigint[]) returns bigint[]
language plpgsql set lock_timeout = '200ms' as $$
begin
  -- Sorted: two finishers that free the same waiters never wait for each other in a circle.
  perform 1 from fenceline.held h where h.job_id = any(p_job_ids) order by h.job_id for update;
  return null;
exception when lock_not_available then
  return array(
    select h.job_id from fenceline.held h where h.job_id = any(p_job_ids) and h.job_id <> all(array(
      select f.job_id from fenceline.held f where f.job_id = any(p_job_ids) order by f.job_id for update skip locked)));
end;
$$;

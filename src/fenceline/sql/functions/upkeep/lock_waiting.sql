-- Locks a job that no worker holds, wherever it waits. False when it is not there, or when somebody else holds it: they are
-- not waited for.
-- Lock order: ready, timer, held.
-- roles: none
create or replace function fenceline.lock_waiting(p_job_id bigint) returns boolean
language plpgsql as $$
begin
  perform 1 from fenceline.ready r where r.job_id = p_job_id for update skip locked;
  if found then
    return true;
  end if;
  perform 1 from fenceline.timer t where t.job_id = p_job_id for update skip locked;
  if found then
    return true;
  end if;
  perform 1 from fenceline.held h where h.job_id = p_job_id for update skip locked;
  return found;
end;
$$;

-- Whether what a block holds, or its place in a line, still counts: its attempt runs, or its lease has not been ended. A lease
-- that is over counts until somebody ends it (end_outside_locks), as an attempt does until it is swept.
-- roles: none
create or replace function fenceline.is_holding(p_job_id bigint, p_attempt_id uuid) returns boolean
language sql stable as $$
  select exists (select 1 from fenceline.running r where r.job_id = p_job_id and r.attempt_id = p_attempt_id)
      or exists (select 1 from fenceline.lock_lease h where h.owner = p_attempt_id);
$$;

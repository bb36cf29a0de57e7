-- The history of one attempt, if it has ended: no row or one.
-- Two probes, because final rows and the others are in an index of their own each; asked for both at once, the planner
-- scans the whole day.
-- roles: none
create or replace function fenceline.ended_attempt(p_job_id bigint, p_attempt_id uuid) returns setof fenceline.history
language sql stable as $$
  select h.* from fenceline.history h where h.job_id = p_job_id and h.attempt_id = p_attempt_id and h.final
  union all
  select h.* from fenceline.history h where h.job_id = p_job_id and h.attempt_id = p_attempt_id and not h.final;
$$;

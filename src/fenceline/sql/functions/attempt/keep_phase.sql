-- Keeps the phase that `progress` shows before another one, or another attempt, takes its place there. The caller has locked
-- the `running` row, so nobody else writes phases of this job.
--
-- p_phase     the phase to come; null: the same
-- roles: none
create or replace function fenceline.keep_phase(p_job_id bigint, p_attempt_id uuid, p_phase text) returns void
language sql as $$
  insert into fenceline.phase (job_id, position, attempt_id, phase, progress, started_at)
  select p.job_id,
         (select coalesce(max(k.position), 0) + 1 from fenceline.phase k where k.job_id = p_job_id),
         p.attempt_id, p.phase, p.progress, coalesce(p.started_at, p.updated_at)
  from fenceline.progress p
  where p.job_id = p_job_id and (p.phase is not null or p.progress is not null)
    and (p.attempt_id <> p_attempt_id or (p_phase is not null and p_phase is distinct from p.phase));
$$;

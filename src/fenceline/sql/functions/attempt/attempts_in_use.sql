-- Which of these attempts somebody else is changing right now, as an open cancel does: whoever wants to end many can end
-- the others first. Does not wait.
-- roles: worker
create or replace function fenceline.attempts_in_use(p_job_ids bigint[], p_attempt_ids uuid[])
returns table (attempt_id uuid)
language sql security definer set search_path = pg_catalog, pg_temp as $$
  with given as materialized (
    select g.job_id, g.attempt_id from unnest(p_job_ids, p_attempt_ids) g(job_id, attempt_id)
  ), free as materialized (
    select r.attempt_id from fenceline.running r
    where r.job_id = any(p_job_ids) order by r.job_id for update skip locked
  )
  select r.attempt_id from given g join fenceline.running r on r.job_id = g.job_id and r.attempt_id = g.attempt_id
  where r.attempt_id not in (select f.attempt_id from free f);
$$;

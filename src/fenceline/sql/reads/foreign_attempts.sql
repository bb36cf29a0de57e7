-- Which of many attempts somebody may not write for: runner_attempt for all of them at once. It does not fence, the
-- operation behind it does.
-- p_owner, p_tenant   as runner_attempt takes them
-- Returns a row for each such place (from 1): `not_found` (the job is missing or foreign), `stale` (the attempt is gone),
-- `forbidden` (it is of a worker, or of somebody else's runner).
-- roles: none
create or replace function fenceline.foreign_attempts(
  p_owner text,
  p_tenant text,
  p_job_ids bigint[],
  p_attempt_ids uuid[]
) returns table (place integer, verdict text)
language sql stable set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off as $$
  select t.n, t.verdict from (
    select g.n::integer,
           case when j.id is null or j.tenant <> p_tenant then 'not_found'
                when r.job_id is null then 'stale'
                when (w.runner and w.owner = p_owner) is not true then 'forbidden' end as verdict
    from unnest(p_job_ids, p_attempt_ids) with ordinality g(job_id, attempt_id, n)
    left join fenceline.job j on j.id = g.job_id
    left join fenceline.running r on r.job_id = g.job_id and r.attempt_id = g.attempt_id
    left join fenceline.worker w on w.id = r.worker_id
  ) t where t.verdict is not null;
$$;

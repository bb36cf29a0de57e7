-- Claims jobs of one lane for a runner (claim_jobs) and returns them as its server answers: one JSON document per attempt,
-- with the job as the view `jobs` shows it.
--
-- p_alone     claim one suspect, to be run alone; nothing unless the runner holds no other attempt
-- Raises as own_runner and claim_jobs. One lane per transaction: two claims that took the locks of several lanes in
-- different order would wait for each other.
-- roles: worker
create or replace function fenceline.claim_for_runner(
  p_runner_id integer,
  p_owner text,
  p_lane text,
  p_limit integer,
  p_kinds text[] default null,
  p_request_id uuid default null,
  p_alone boolean default false
) returns setof json
language plpgsql security definer set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set jit = off
as $$
declare
  v_claims record;
begin
  perform fenceline.own_runner(p_runner_id, p_owner);
  if p_alone and exists (select 1 from fenceline.running r where r.worker_id = p_runner_id) then
    return;
  end if;
  -- Two statements: only a later one sees what claim_jobs writes.
  select array_agg(c.job_id) as job_ids, array_agg(c.alone) as alone, array_agg(c.more) as details into v_claims
  from fenceline.claim_jobs(p_runner_id, p_lane, p_limit, p_kinds, p_request_id, null, p_alone) c;
  return query select fenceline.runner_claims(v_claims.job_ids, v_claims.alone, v_claims.details);
end;
$$;

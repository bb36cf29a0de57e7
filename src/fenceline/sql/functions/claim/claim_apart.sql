-- Claims suspects of one lane for a runner that has a process of its own for each of them, whatever else it runs; answers as
-- claim_for_runner, and raises as that.
-- roles: worker
create or replace function fenceline.claim_apart(
  p_runner_id integer,
  p_owner text,
  p_lane text,
  p_limit integer,
  p_kinds text[] default null,
  p_request_id uuid default null
) returns setof json
language plpgsql security definer set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set jit = off
as $$
declare
  v_claims record;
begin
  perform fenceline.own_runner(p_runner_id, p_owner);
  -- Two statements: only a later one sees what claim_jobs writes.
  select array_agg(c.job_id) as job_ids, array_agg(c.alone) as alone, array_agg(c.more) as details into v_claims
  from fenceline.claim_jobs(p_runner_id, p_lane, p_limit, p_kinds, p_request_id, null, true) c;
  return query select fenceline.runner_claims(v_claims.job_ids, v_claims.alone, v_claims.details);
end;
$$;

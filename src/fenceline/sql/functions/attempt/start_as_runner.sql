-- Records that handlers of somebody's runners have started, many at a time: start_attempts, for those that are theirs.
-- p_owner, p_tenant   as runner_attempt takes them; the other parameters as start_attempts
-- Returns a row for each place (from 1) that has not started: `stale`, `forbidden` or `not_found` as finish_as_runner.
-- roles: worker
create or replace function fenceline.start_as_runner(
  p_owner text,
  p_tenant text,
  p_job_ids bigint[],
  p_attempt_ids uuid[],
  p_ran_seconds double precision[] default null
) returns table (place integer, verdict text)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_refused integer[];
begin
  return query select f.place, f.verdict from fenceline.foreign_attempts(p_owner, p_tenant, p_job_ids, p_attempt_ids) f;
  v_refused := array(select f.place from fenceline.foreign_attempts(p_owner, p_tenant, p_job_ids, p_attempt_ids) f);
  return query
  with given as materialized (
    select i from generate_series(1, cardinality(p_job_ids)) i where i <> all(v_refused) order by i
  ), gone as materialized (
    select s.attempt_id from fenceline.start_attempts(
      array(select p_job_ids[i] from given), array(select p_attempt_ids[i] from given),
      case when p_ran_seconds is not null then array(select p_ran_seconds[i] from given) end) s
  )
  select i, 'stale' from given join gone g on p_attempt_ids[i] = g.attempt_id;
end;
$$;

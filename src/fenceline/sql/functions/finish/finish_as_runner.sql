-- Ends attempts of somebody's runners, many at a time: finish_attempts, for those that are theirs to end.
--
-- p_owner, p_tenant   as runner_attempt takes them; the other parameters as finish_attempts
-- p_finalized   the kind's finalizer has run in this transaction
-- Returns a row for each place (from 1) that was not accepted:
--   already     the same attempt has ended like this before: a reply was lost
--   stale       the attempt is gone, or has ended in another way
--   forbidden   the attempt is of a worker, or of somebody else's runner
--   not_found   the job is missing or foreign
--   finalizer   the kind has a finalizer, which must run in the transaction that ends the attempt well
-- None of these has changed anything. Raises as finish_attempts does.
-- Lock order: as finish_attempts.
-- roles: worker
create or replace function fenceline.finish_as_runner(
  p_owner text,
  p_tenant text,
  p_job_ids bigint[],
  p_attempt_ids uuid[],
  p_outcomes text[] default null,
  p_results jsonb[] default null,
  p_errors jsonb[] default null,
  p_error_lists jsonb[] default null,
  p_delays double precision[] default null,
  p_ran_seconds double precision[] default null,
  p_metadata jsonb[] default null,
  p_finalized boolean default false
) returns table (place integer, verdict text)
language plpgsql security definer set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set jit = off
as $$
declare
  v_refused integer[] := '{}';
  v_late record;
begin
  for place, verdict in
    select t.n, t.verdict from (
      select g.n::integer,
        case
          when j.id is null or j.tenant <> p_tenant then 'not_found'
          when r.job_id is null then nullif(coalesce((
            select case when w.runner and w.owner = p_owner then 'ended' else 'forbidden' end
            from fenceline.ended_attempt(g.job_id, g.attempt_id) h
            left join fenceline.worker w on w.id = h.worker_id), 'stale'), 'ended')
          when (w.runner and w.owner = p_owner) is not true then 'forbidden'
          when k.finalizer and not p_finalized and coalesce(g.outcome, 'succeeded') in ('succeeded', 'succeeded_with_errors')
            then 'finalizer'
        end as verdict
      from unnest(p_job_ids, p_attempt_ids, p_outcomes) with ordinality g(job_id, attempt_id, outcome, n)
      left join fenceline.job j on j.id = g.job_id
      left join fenceline.running r on r.job_id = g.job_id and r.attempt_id = g.attempt_id
      left join fenceline.worker w on w.id = r.worker_id
      left join fenceline.kind k on k.name = j.kind
    ) t where t.verdict is not null
  loop
    v_refused := v_refused || place;
    return next;
  end loop;

  -- Array subscripts keep every list that was given, and the nulls of those that were not.
  for v_late in
    with given as materialized (
      select i from generate_series(1, cardinality(p_job_ids)) i where i <> all(v_refused) order by i
    ), finished as materialized (
      select f.attempt_id, f.verdict from fenceline.finish_attempts(
        array(select p_job_ids[i] from given), array(select p_attempt_ids[i] from given),
        case when p_outcomes is not null then array(select p_outcomes[i] from given) end,
        case when p_results is not null then array(select p_results[i] from given) end,
        case when p_errors is not null then array(select p_errors[i] from given) end,
        case when p_error_lists is not null then array(select p_error_lists[i] from given) end,
        case when p_delays is not null then array(select p_delays[i] from given) end,
        case when p_ran_seconds is not null then array(select p_ran_seconds[i] from given) end,
        case when p_metadata is not null then array(select p_metadata[i] from given) end) f
    )
    select i, f.verdict from finished f join given on p_attempt_ids[i] = f.attempt_id order by i
  loop
    place := v_late.i;
    -- A replay is one only if it says the same: another result under the same outcome is another end.
    verdict := case when v_late.verdict = 'already' and exists (
      select 1 from fenceline.ended_attempt(p_job_ids[v_late.i], p_attempt_ids[v_late.i]) h
      where h.result is not distinct from p_results[v_late.i]
        and h.errors is not distinct from p_error_lists[v_late.i]
        and (p_errors[v_late.i] is null or h.error = p_errors[v_late.i])) then 'already' else 'stale' end;
    return next;
  end loop;
end;
$$;

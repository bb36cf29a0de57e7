-- Ends attempts, many at a time: the terminal write, or the way back to the queue.
--
-- p_job_ids, p_attempt_ids   which attempts; a pair that is not live changes nothing
-- p_outcomes     per attempt: succeeded · succeeded_with_errors · failed (retried while attempts remain) ·
--                failed_for_good · cancelled · snoozed (again after a delay, attempt refunded) · released (given back,
--                attempt refunded, place in the queue kept) · refused (the handler does not take the args: for another worker
--                to run, see end_attempt). Null: all succeeded
-- p_results, p_errors, p_error_lists, p_metadata   JSON per attempt, or null
-- p_delays       seconds until a failed or snoozed job runs again; null: by its retry policy
-- p_ran_seconds  how long ago the handler started; null: as start_attempts recorded it
-- Returns only the pairs that were not accepted: `already` (the same attempt has ended with the same outcome before: a
-- reply was lost) or `stale` (the attempt is gone: nothing was changed).
-- Raises FL005 (a result is too large), FL007 (an unknown outcome, a number out of range, lists of different length).
-- Lock order: running rows, then as settle.
-- roles: worker
create or replace function fenceline.finish_attempts(
  p_job_ids bigint[],
  p_attempt_ids uuid[],
  p_outcomes text[] default null,
  p_results jsonb[] default null,
  p_errors jsonb[] default null,
  p_error_lists jsonb[] default null,
  p_delays double precision[] default null,
  p_ran_seconds double precision[] default null,
  p_metadata jsonb[] default null
) returns table (job_id bigint, attempt_id uuid, verdict text)
language plpgsql security definer
set search_path = pg_catalog, pg_temp
-- As in claim_jobs: plans that do not depend on statistics.
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set jit = off
as $$
declare
  v_now timestamptz := fenceline.clock();
  v_ended bigint[];
  v_attempts uuid[];
  v_freed text[];
  v_uses integer;
  v_given record;
  v_run fenceline.running;
  v_outcome text;
begin
  if cardinality(p_attempt_ids) is distinct from cardinality(p_job_ids)
     or cardinality(p_outcomes) <> cardinality(p_job_ids) then
    raise exception using errcode = 'FL007',
      message = format('%s jobs, %s attempts and %s outcomes were given: each job needs one of each',
                       cardinality(p_job_ids), cardinality(p_attempt_ids), cardinality(p_outcomes));
  end if;
  perform fenceline.check_outcomes(p_outcomes, p_results, p_error_lists, p_delays, p_ran_seconds);

  -- The common case in one statement. The fence is the join: both the job and the attempt must match.
  with given as materialized (
    select g.job_id, g.attempt_id, coalesce(g.outcome, 'succeeded') as outcome, g.result, g.errors, g.ran_seconds,
           g.metadata
    from unnest(p_job_ids, p_attempt_ids, p_outcomes, p_results, p_error_lists, p_ran_seconds, p_metadata)
      g(job_id, attempt_id, outcome, result, errors, ran_seconds, metadata)
    where g.outcome is null or g.outcome in ('succeeded', 'succeeded_with_errors')
  ), ended as (
    delete from fenceline.running r using given g
    where r.job_id = g.job_id and r.attempt_id = g.attempt_id
    returning r.job_id, r.token, r.claimed_at, r.started_at, r.worker_id, r.attempt_id, r.number, r.uses,
              case when r.counted then r.lane end as freed, g.outcome, g.result, g.errors, g.ran_seconds, g.metadata
  ), written as (
    insert into fenceline.history (job_id, ended_at, token, claimed_at, started_at, worker_id, attempt_id, number, final,
                                   outcome, result, errors, metadata)
    select e.job_id, v_now, e.token, e.claimed_at,
           coalesce(v_now - make_interval(secs => e.ran_seconds), e.started_at),
           e.worker_id, e.attempt_id, e.number, true, e.outcome, e.result, e.errors, e.metadata
    from ended e
  )
  select array_agg(e.job_id), array_agg(e.attempt_id), bit_or(e.uses),
         array_agg(distinct e.freed) filter (where e.freed is not null)
    into v_ended, v_attempts, v_uses, v_freed
  from ended e;
  if v_freed is not null then
    perform fenceline.wake(v_freed);  -- a slot is free
  end if;
  if v_uses & 64 /* children */ <> 0 then
    perform fenceline.make_children(v_ended, v_attempts);
  end if;

  if coalesce(cardinality(v_ended), 0) < cardinality(p_job_ids) then
    for v_given in
      select g.* from unnest(p_job_ids, p_attempt_ids, p_outcomes, p_results, p_errors, p_error_lists, p_delays,
                             p_ran_seconds, p_metadata)
        g(job_id, attempt_id, outcome, result, error, errors, delay, ran_seconds, metadata)
      -- By attempt, not by job: one batch may hold an old and the live attempt of the same job.
      where (g.attempt_id = any(v_attempts)) is not true
    loop
      delete from fenceline.running r where r.job_id = v_given.job_id and r.attempt_id = v_given.attempt_id
      returning * into v_run;
      if found then
        v_outcome := fenceline.end_attempt(v_run, v_given.outcome, v_given.result, v_given.error, v_given.errors,
                                           v_given.delay, v_given.ran_seconds, v_given.metadata);
        if v_outcome is not null then
          v_ended := v_ended || v_run.job_id;
          v_uses := coalesce(v_uses, 0) | coalesce(v_run.uses, 0);
        end if;
      else
        job_id := v_given.job_id;
        attempt_id := v_given.attempt_id;
        verdict := case when exists (
          select 1 from fenceline.ended_attempt(v_given.job_id, v_given.attempt_id) h
          where coalesce(h.asked, h.outcome) = coalesce(v_given.outcome, 'succeeded')
        ) then 'already' else 'stale' end;
        return next;
      end if;
    end loop;
  end if;
  if v_ended is not null then
    perform fenceline.settle(v_ended, v_uses);
  end if;
end;
$$;

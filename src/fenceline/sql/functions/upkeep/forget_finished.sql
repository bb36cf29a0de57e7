-- Forgets those of the given jobs that are finished and past their retention. Log lines go first, at most p_limit per call,
-- so that a chatty job makes no long transaction. What somebody holds (an open delete or erase) is left for the next time.
-- Returns how many jobs were forgotten, and whether there is more to do for the same ones. Forgotten is null when somebody
-- else is at it: one at a time.
-- roles: worker
create or replace function fenceline.forget_finished(
  p_job_ids bigint[],
  p_limit integer default 10000,
  out forgotten bigint,
  out more boolean
)
language plpgsql security definer
set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off
set lock_timeout = '500ms' as $$
declare
  v_now timestamptz := fenceline.clock();
  v_ids bigint[];
  v_lines integer;
begin
  more := false;
  if not pg_try_advisory_xact_lock(1179926087, 2) then
    return;
  end if;
  v_ids := array(
    select h.job_id
    from fenceline.history h
    join fenceline.job j on j.id = h.job_id
    where h.job_id = any(p_job_ids) and h.final and h.ended_at < v_now - fenceline.retention_of(j.kind, h.outcome)
    for update skip locked);
  delete from fenceline.log where ctid = any(array(
    select l.ctid from fenceline.log l where l.job_id = any(v_ids) limit p_limit));
  get diagnostics v_lines = row_count;
  if v_lines = p_limit then
    forgotten := 0;
    more := true;
    return;
  end if;
  perform fenceline.forget_jobs(v_ids);
  forgotten := cardinality(v_ids);
end;
$$;

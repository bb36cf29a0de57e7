-- Records that handlers have started: claimed → running. Returns the pairs that are stale.
-- An attempt that somebody is changing (an open cancel, say) is not waited for: its start is known when it ends.
-- p_ran_seconds   how long ago each started; null: now
-- roles: worker
create or replace function fenceline.start_attempts(
  p_job_ids bigint[],
  p_attempt_ids uuid[],
  p_ran_seconds double precision[] default null
) returns table (job_id bigint, attempt_id uuid)
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set jit = off
as $$
declare
  v_now timestamptz := fenceline.clock();
begin
  return query
  with given as materialized (
    select g.job_id, g.attempt_id, g.ran_seconds
    from unnest(p_job_ids, p_attempt_ids, p_ran_seconds) g(job_id, attempt_id, ran_seconds)
  ), free as materialized (
    select r.ctid as place from fenceline.running r
    where r.job_id = any(p_job_ids) and r.attempt_id = any(p_attempt_ids) order by r.job_id for update skip locked
  ), started as (
    update fenceline.running r
    set started_at = coalesce(r.started_at, v_now - make_interval(secs => coalesce(g.ran_seconds, 0)))
    from given g
    where r.job_id = g.job_id and r.attempt_id = g.attempt_id and r.ctid = any(array(select f.place from free f))
    returning r.attempt_id
  )
  select g.job_id, g.attempt_id from given g
  where not exists (select 1 from started s where s.attempt_id = g.attempt_id)
    and not exists (select 1 from fenceline.running r where r.job_id = g.job_id and r.attempt_id = g.attempt_id);
  if exists (select 1 from fenceline.follow) then
    perform fenceline.tell_followers(p_job_ids);
  end if;
end;
$$;

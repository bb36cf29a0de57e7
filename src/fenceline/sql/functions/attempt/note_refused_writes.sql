-- Notes that writes of attempts were refused because the attempts are gone; job_events shows it. Of attempts that never were
-- nothing is noted.
--
-- p_job_ids, p_attempt_ids   the attempts
-- p_write    what was refused, for all of them: the name of an operation. Raises FL002
-- roles: worker
create or replace function fenceline.note_refused_writes(p_job_ids bigint[], p_attempt_ids uuid[], p_write text)
returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off
as $$
declare
  v_now timestamptz := fenceline.clock();
begin
  perform fenceline.check_name('write', p_write);
  insert into fenceline.refused_write as w (job_id, attempt_id, write, times, first_at, last_at)
  -- In one order, so that two who note the same do not wait for each other in a ring.
  select g.job_id, g.attempt_id, p_write, count(*), v_now, v_now
  from unnest(p_job_ids, p_attempt_ids) g(job_id, attempt_id)
  where exists (select 1 from fenceline.ended_attempt(g.job_id, g.attempt_id))
  group by g.job_id, g.attempt_id order by g.job_id, g.attempt_id
  on conflict (job_id, attempt_id, write) do update
    set times = least(w.times::bigint + excluded.times, 2000000000), last_at = excluded.last_at;
end;
$$;

-- The process that ran one attempt, and nothing else, has died: the job did it. Its worker lives and says so.
--
-- p_error     what is known of the death: signal, exit_code
-- Returns `accepted`, `already` (said before: a reply was lost) or `stale` (the attempt is gone: nothing was changed).
-- Deaths of such processes are counted from the job's history, not in `deaths`: a job that has a process to itself does
-- not have to wait until a whole worker is empty to run alone.
-- Lock order: running row, then as settle.
-- roles: worker
create or replace function fenceline.crash_attempt(p_job_id bigint, p_attempt_id uuid, p_error jsonb default null)
returns text
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_run fenceline.running;
  v_deaths integer;
begin
  delete from fenceline.running r where r.job_id = p_job_id and r.attempt_id = p_attempt_id returning * into v_run;
  if not found then
    return case when exists (
      select 1 from fenceline.ended_attempt(p_job_id, p_attempt_id) h
      where coalesce(h.asked, h.outcome) in ('crashed', 'quarantined')) then 'already' else 'stale' end;
  end if;
  select count(*) into v_deaths from fenceline.history h
  where h.job_id = p_job_id and not h.final and h.outcome = 'crashed' and h.metadata ? 'isolated';
  perform fenceline.end_crashed(v_run, coalesce(v_run.deaths, 0) + v_deaths + 1, p_error, p_suspect => false,
                                p_metadata => '{"isolated": true}');
  return 'accepted';
end;
$$;

-- What many live attempts have to report, in one statement: log lines (write_log) and progress (set_progress).
--
-- p_lines     per attempt a JSON array of lines, or null
-- p_progress  per attempt {"phase", "progress"}, or null
-- Returns the attempts that are stale; of those nothing was written. Raises as write_log and set_progress do.
-- Lock order: running rows by job id, as everybody who locks several.
-- roles: worker
create or replace function fenceline.report_attempts(
  p_job_ids bigint[],
  p_attempt_ids uuid[],
  p_lines jsonb[],
  p_progress jsonb[] default null
) returns table (attempt_id uuid)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_given record;
begin
  for v_given in
    select g.job_id, g.attempt_id, g.lines, g.progress
    from unnest(p_job_ids, p_attempt_ids, p_lines, p_progress) g(job_id, attempt_id, lines, progress)
    order by g.job_id
  loop
    if (v_given.lines is not null and not fenceline.write_log(v_given.job_id, v_given.attempt_id, v_given.lines))
       or (v_given.progress is not null
           and not fenceline.set_progress(v_given.job_id, v_given.attempt_id, v_given.progress ->> 'phase',
                                          nullif(v_given.progress -> 'progress', 'null'))) then
      attempt_id := v_given.attempt_id;
      return next;
    end if;
  end loop;
end;
$$;

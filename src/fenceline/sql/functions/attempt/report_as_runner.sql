-- What many live attempts of somebody's runners have to report: report_attempts, for those that are theirs, and safe to
-- repeat.
-- p_owner, p_tenant   as runner_attempt takes them; p_lines, p_progress as report_attempts
-- p_offsets   per attempt, how many lines were sent before these: see write_log
-- Returns a row for each place (from 1) of which nothing was written: `stale`, `forbidden` or `not_found` as
-- finish_as_runner. Raises as write_log and set_progress do.
-- Lock order: running rows by job id, as everybody who locks several.
-- roles: worker
create or replace function fenceline.report_as_runner(
  p_owner text,
  p_tenant text,
  p_job_ids bigint[],
  p_attempt_ids uuid[],
  p_lines jsonb[],
  p_progress jsonb[],
  p_offsets integer[]
) returns table (place integer, verdict text)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_given record;
begin
  for v_given in
    select g.n::integer as place, f.verdict, g.job_id, g.attempt_id, g.lines, g.progress, g.first
    from unnest(p_job_ids, p_attempt_ids, p_lines, p_progress, p_offsets)
           with ordinality g(job_id, attempt_id, lines, progress, first, n)
    left join fenceline.foreign_attempts(p_owner, p_tenant, p_job_ids, p_attempt_ids) f on f.place = g.n
    order by g.job_id, g.n  -- lines of one attempt, in several parts, come in their order
  loop
    place := v_given.place;
    verdict := v_given.verdict;
    if verdict is not null then
      return next;
    elsif (v_given.lines is not null
           and not fenceline.write_log(v_given.job_id, v_given.attempt_id, v_given.lines, v_given.first))
       or (v_given.progress is not null
           and not fenceline.set_progress(v_given.job_id, v_given.attempt_id, null, v_given.progress)) then
      verdict := 'stale';
      return next;
    end if;
  end loop;
end;
$$;

-- Records how a step of a live attempt ended. A step that is done stays as it is: the same again (a reply was lost) is
-- answered like the first, another args hash is refused.
--
-- p_args_hash   of the step's arguments, so that a name used for something else is noticed; null: not compared
-- p_error       given: the step failed, and is run again by the next attempt
-- Returns the step's result. Raises FL012 (stale), FL021 (the name belongs to other arguments), FL005, FL007.
-- roles: worker
create or replace function fenceline.record_step(
  p_job_id bigint,
  p_attempt_id uuid,
  p_name text,
  p_args_hash text default null,
  p_result jsonb default null,
  p_error jsonb default null,
  p_ran_seconds double precision default null
) returns jsonb
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_run fenceline.running;
  v_step fenceline.step;
begin
  perform fenceline.check_step_name(p_name);
  perform fenceline.check_size(format('the result of step %L', p_name), p_result);
  v_run := fenceline.live_attempt(p_job_id, p_attempt_id);
  select * into v_step from fenceline.step s where s.job_id = p_job_id and s.name = p_name;
  if v_step.status = 'done' then
    if v_step.args_hash <> p_args_hash then  -- null, on either side, is not compared
      raise exception using errcode = 'FL021',
        message = format('step %L of job %s was done with other arguments', p_name, fenceline.public_id(p_job_id)),
        hint = 'Give each use of a step a name of its own.';
    end if;
    return v_step.result;
  end if;
  insert into fenceline.step as s (job_id, name, position, status, args_hash, result, error, token, ran_seconds, ended_at)
  select p_job_id, p_name, coalesce(max(o.position), 0) + 1, case when p_error is null then 'done' else 'failed' end,
         p_args_hash, p_result, p_error, v_run.token, p_ran_seconds, fenceline.clock()
  from fenceline.step o where o.job_id = p_job_id
  on conflict (job_id, name) do update set
    status = excluded.status, args_hash = excluded.args_hash, result = excluded.result, error = excluded.error,
    token = excluded.token, ran_seconds = excluded.ran_seconds, ended_at = excluded.ended_at;
  return p_result;
end;
$$;

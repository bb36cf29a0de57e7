-- Begins a wait of a live attempt, or ends it where what it waits for is there: a signal that no other wait has taken, or the
-- time. How it ended is kept as a step (its args hash is the word), so that later attempts come past it, and a retry too.
-- A wait that goes on gives the slot back: the attempt ends with outcome `waiting`, and the job runs again when there is news.
--
-- p_step      names this wait among the job's steps. Begun again by a later attempt it goes on, with the time it had
-- p_signal    null: a sleep
-- p_seconds   how long at most; null: for ever
-- Returns {"ended": "signal" | "timeout" | "slept", "payload": …}, or {"ended": null}: it waits.
-- Raises FL012 (stale), FL021 (the step is another one), FL002 (signal), FL007 (step, seconds).
-- Lock order: the running row. Only live attempts take signals, and a job has one.
-- roles: worker
create or replace function fenceline.begin_wait(
  p_job_id bigint,
  p_attempt_id uuid,
  p_step text,
  p_signal text default null,
  p_seconds double precision default null
) returns jsonb
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_now timestamptz := fenceline.clock();
  v_step fenceline.step;
  v_wait fenceline.wait;
  v_signal fenceline.signal;
  v_ended text;
begin
  perform fenceline.check_step_name(p_step);
  if p_signal is not null then
    perform fenceline.check_name('signal', p_signal);
  end if;
  if p_seconds not between 0 and 1e9 or coalesce(p_signal, p_seconds::text) is null then
    raise exception using errcode = 'FL007',
      message = format('a wait of %s seconds is out of range: use 0 to 1000000000', coalesce(p_seconds::text, 'no'));
  end if;
  perform fenceline.live_attempt(p_job_id, p_attempt_id);
  select * into v_step from fenceline.step s where s.job_id = p_job_id and s.name = p_step and s.status = 'done';
  if found then
    if (v_step.args_hash in ('signal', 'timeout', 'slept')) is not true then
      raise exception using errcode = 'FL021',
        message = format('step %L of job %s is no wait', p_step, fenceline.public_id(p_job_id)),
        hint = 'Give each use of a step a name of its own.';
    end if;
    return jsonb_build_object('ended', v_step.args_hash, 'payload', v_step.result);  -- asked again: the reply was lost
  end if;

  insert into fenceline.wait as w (job_id, step, signal, since, until)
  values (p_job_id, p_step, p_signal, v_now, v_now + make_interval(secs => p_seconds))
  on conflict (job_id) do update set
    step = excluded.step, signal = excluded.signal, due_at = null,
    since = case when w.step = p_step then w.since else excluded.since end,
    until = case when w.step = p_step then w.until else excluded.until end
  returning * into v_wait;
  if p_signal is not null then
    select * into v_signal from fenceline.signal s
    where s.job_id = p_job_id and s.name = p_signal and s.taken_at is null order by s.id limit 1 for update;
    if found then
      v_ended := 'signal';
      update fenceline.signal s set taken_at = v_now, taken_by = p_step, payload = null
      where s.job_id = p_job_id and s.id = v_signal.id;
    end if;
  end if;
  if v_ended is null and v_wait.until <= v_now then
    v_ended := case when p_signal is null then 'slept' else 'timeout' end;
  end if;
  if v_ended is not null then
    perform fenceline.record_step(p_job_id, p_attempt_id, p_step, v_ended, v_signal.payload,
                                  p_ran_seconds => extract(epoch from v_now - v_wait.since)::double precision);
    delete from fenceline.wait w where w.job_id = p_job_id;
  end if;
  return jsonb_build_object('ended', v_ended, 'payload', v_signal.payload);
end;
$$;

-- Why a scheduled job waits (explain_job): its run_at, a retry's delay, a snooze, a sleep; or nobody hands out what is due.
-- roles: none
create or replace function fenceline.explain_timer(p_job_id bigint) returns jsonb
language plpgsql stable as $$
declare
  v_now timestamptz := fenceline.clock();
  v_id text := fenceline.public_id(p_job_id);
  v_timer fenceline.timer;
  v_most smallint;
  v_last record;
  v_left double precision;
begin
  select * into v_timer from fenceline.timer t where t.job_id = p_job_id;
  select j.max_attempts into v_most from fenceline.job j where j.id = p_job_id;
  select h.outcome, h.asked, h.error, h.ended_at, h.metadata into v_last from fenceline.history h
  where h.job_id = p_job_id and not h.final order by h.token desc limit 1;
  v_left := extract(epoch from v_timer.run_at - v_now);
  if v_left <= -5 then
    return fenceline.reason('timer_overdue',
      format('It has been due for %s, and no worker or server is up to hand it out.', fenceline.say_seconds(-v_left)),
      v_timer.run_at, null, '{}', array['fenceline worker APP', 'fenceline sweep']);
  end if;
  v_left := greatest(v_left, 0);
  if v_last.asked = 'waiting' then
    return fenceline.reason('sleeping',
      format('Its handler sleeps for %s more. It holds no slot.', fenceline.say_seconds(v_left)), v_last.ended_at,
      v_timer.run_at, '{}', array['fenceline jobs run-now ' || v_id]);
  elsif v_last.outcome = 'snoozed' then
    return fenceline.reason('snoozed',
      format('Its handler put it off for %s more.', fenceline.say_seconds(v_left)), v_last.ended_at, v_timer.run_at,
      jsonb_build_object('reason', v_last.metadata ->> 'reason'), array['fenceline jobs run-now ' || v_id]);
  elsif v_last.outcome is not null then
    return fenceline.reason('retry',
      format('Attempt %s of %s %s%s. The next begins in %s.', coalesce(v_timer.number, 0), v_most, v_last.outcome,
             coalesce(' (' || fenceline.say_error(v_last.error) || ')', ''), fenceline.say_seconds(v_left)),
      v_last.ended_at, v_timer.run_at,
      jsonb_build_object('error', v_last.error - 'traceback', 'attempt', v_timer.number, 'max_attempts', v_most),
      array['fenceline jobs run-now ' || v_id, 'fenceline jobs show ' || v_id]);
  end if;
  return fenceline.reason('timer', format('It is to run in %s.', fenceline.say_seconds(v_left)), fenceline.id_time(p_job_id),
                          v_timer.run_at, '{}', array['fenceline jobs run-now ' || v_id]);
end;
$$;

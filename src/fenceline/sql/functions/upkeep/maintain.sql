-- What has to happen at least once a second somewhere, for the whole fleet: any worker or server may call it as often
-- as it likes, the work is done once per interval. `upkeep` is the other half, about once a minute.
-- Returns counts of what was done, `schedules_due` (fire_schedule is for a program that can compute ticks),
-- `messages_due` (deliveries that take_messages has something for: it is for a program that reaches the backend),
-- `limits_tenants` (then call count_tenants, which may take its time, in a transaction of its own), and `next_seconds`,
-- when the next timer or schedule is due (null: there is none); null when the work itself was not due.
-- Nothing here waits for a transaction that somebody leaves open. A part that would have to is undone and named in
-- `blocked`; the others are done, and it is tried again the next time.
-- Needs READ COMMITTED (FL016).
-- roles: worker
create or replace function fenceline.maintain(p_interval_seconds double precision default 0.5) returns jsonb
language plpgsql security definer set search_path = pg_catalog, pg_temp set lock_timeout = '500ms' as $$
declare
  v_done jsonb := '{}';
  v_blocked text[] := '{}';
  v_part text;
  v_step interval;
begin
  perform fenceline.require_read_committed('maintain');
  v_step := fenceline.clock_step((select m.ran_at from fenceline.maintenance m where m.task = 'live'));
  if not fenceline.is_due('live', p_interval_seconds) then
    return null;
  end if;
  if v_step is not null then
    perform fenceline.absorb_step(v_step);
  end if;
  foreach v_part in array array['sweep', 'end_outside_locks', 'promote_timers', 'expire_jobs', 'verify_dependencies',
                                'verify_dedupe_keys', 'verify_refusals', 'admit_keys', 'resume_waits', 'resend_messages'] loop
    begin
      v_done := v_done || case v_part
        when 'sweep' then jsonb_build_object('swept', fenceline.sweep())
        when 'end_outside_locks' then jsonb_build_object('unlocked', fenceline.end_outside_locks(v_step))
        when 'promote_timers' then jsonb_build_object('promoted', fenceline.promote_timers())
        when 'expire_jobs' then jsonb_build_object('expired', fenceline.expire_jobs())
        when 'verify_dependencies' then jsonb_build_object('verified', fenceline.verify_dependencies())
        when 'verify_dedupe_keys' then jsonb_build_object('rechecked', fenceline.verify_dedupe_keys())
        when 'verify_refusals' then jsonb_build_object('refused', fenceline.verify_refusals())
        when 'admit_keys' then jsonb_build_object('admitted', fenceline.admit_keys())
        when 'resume_waits' then jsonb_build_object('resumed', fenceline.resume_waits())
        when 'resend_messages' then jsonb_build_object('resent', fenceline.resend_messages())
      end;
    exception when lock_not_available or deadlock_detected then
      v_blocked := v_blocked || v_part;
    end;
  end loop;
  v_done := v_done || jsonb_build_object(
    'blocked', v_blocked,
    'messages_due', fenceline.messages_due(),
    'limits_tenants', (select s.limits_tenants from fenceline.setting s),
    'schedules_due', (select count(*) from fenceline.schedule s where s.due_at <= fenceline.clock()),
    'next_seconds', (
      select extract(epoch from min(n.at) - fenceline.clock())
      from (select min(t.run_at) from fenceline.timer t
            union all
            select min(w.due_at) from fenceline.wait w where w.due_at is not null
            union all
            select min(s.due_at) from fenceline.schedule s
            where s.due_at > fenceline.clock() and s.due_at < 'infinity') n(at)));
  return v_done;
end;
$$;

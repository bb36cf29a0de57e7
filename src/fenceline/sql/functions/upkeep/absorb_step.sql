-- Moves what is meant as "so long from then" along with a clock that was set: leases, grace periods, signs of life,
-- backoffs, snoozes and waits, the buckets of rate limits, messages, refusals, who waits. What is meant as a moment (run_at, expires_at, ticks of
-- schedules) stays. Only what was noted before the step moves; what somebody holds is left as it is.
--
-- p_step      see clock_step
-- Lock order: worker rows, running rows, then the rest; all skipping locked ones.
-- roles: none
create or replace function fenceline.absorb_step(p_step interval) returns void
language plpgsql as $$
declare
  v_now timestamptz := fenceline.clock();
  v_back boolean := p_step < interval '0';
begin
  update fenceline.worker w
  set lease_until = case when v_back then least(w.lease_until, v_now + make_interval(secs => w.lease_seconds))
                         else w.lease_until + p_step end,
      heartbeat_at = least(w.heartbeat_at, v_now), listed_at = least(w.listed_at, v_now)
  where w.id = any(array(
    select o.id from fenceline.worker o
    where o.stopped_at is null and fenceline.is_before_step(o.heartbeat_at, p_step, v_now)
    order by o.id for no key update skip locked));

  update fenceline.running r set cancel_deadline = r.cancel_deadline + p_step
  where r.job_id = any(array(
    select o.job_id from fenceline.running o
    where o.cancel_deadline is not null and fenceline.is_before_step(o.cancel_requested_at, p_step, v_now)
    for no key update skip locked));
  update fenceline.running r set active_at = coalesce(r.active_at, r.started_at, r.claimed_at) + p_step
  where r.job_id = any(array(
    select o.job_id from fenceline.lane n
    join fenceline.running o on o.lane = n.name and o.counted
    where n.stale_timeout_seconds is not null
      and fenceline.is_before_step(coalesce(o.active_at, o.started_at, o.claimed_at), p_step, v_now)
    for no key update of o skip locked));

  -- A job that was claimed before waits for a delay, any other for its run_at.
  update fenceline.timer t set run_at = t.run_at + p_step
  where t.job_id = any(array(
    select o.job_id from fenceline.timer o
    where o.token is not null and fenceline.is_before_step(fenceline.id_time(o.seq), p_step, v_now)
    for no key update skip locked));

  update fenceline.wait w set since = w.since + p_step, until = w.until + p_step, due_at = w.due_at + p_step
  where w.job_id = any(array(
    select o.job_id from fenceline.wait o where fenceline.is_before_step(o.since, p_step, v_now)
    for no key update skip locked));

  update fenceline.lane_state s set refilled_at = s.refilled_at + p_step
  where s.lane = any(array(
    select o.lane from fenceline.lane_state o where fenceline.is_before_step(o.refilled_at, p_step, v_now)
    for no key update skip locked));
  update fenceline.message m set sent_at = m.sent_at + p_step
  where m.job_id = any(array(
    select o.job_id from fenceline.message o where fenceline.is_before_step(o.sent_at, p_step, v_now)
    for no key update skip locked));
  update fenceline.refusal f set refused_at = f.refused_at + p_step
  where f.job_id = any(array(
    select o.job_id from fenceline.refusal o where fenceline.is_before_step(o.refused_at, p_step, v_now)
    for no key update skip locked));
  update fenceline.schedule s set due_at = v_now + interval '1 minute'  -- as defer_schedule has it
  where s.name = any(array(
    select o.name from fenceline.schedule o
    where o.error is not null and o.due_at > v_now + interval '1 minute' and o.due_at < 'infinity'
      and (o.next_at > v_now) is not true
    for no key update skip locked));
  if not v_back then
    update fenceline.waiter w set until = w.until + p_step where w.until between v_now - p_step and v_now;
    update fenceline.watch w set until = w.until + p_step where w.until between v_now - p_step and v_now;
    update fenceline.follow f set until = f.until + p_step where f.until between v_now - p_step and v_now;
  end if;
end;
$$;

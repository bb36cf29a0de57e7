-- Reclaims what nobody holds any more: attempts of workers whose lease is over, attempts whose cancel grace is over,
-- attempts that a lane calls stale. The fence is rotated first (the `running` row is deleted), then the job moves.
-- Returns how many attempts were ended. Waits for nobody: what somebody holds is left for the next time, and a worker is
-- only signed off when nothing of it is left.
-- Lock order: worker rows (skip locked), running rows (skip locked).
-- Needs READ COMMITTED (FL016).
-- roles: worker
create or replace function fenceline.sweep() returns integer
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_now timestamptz := fenceline.clock();
  v_lost integer[];
  v_frozen integer[];
  v_runs fenceline.running[];
  v_run fenceline.running;
  v_stale record;
  v_count integer := 0;
begin
  perform fenceline.require_read_committed('sweep');
  -- FOR UPDATE, so that a claim of a worker that is being swept waits and is then refused.
  v_lost := array(
    select w.id from fenceline.worker w where w.stopped_at is null and w.lease_until < v_now
    order by w.id for update skip locked);
  -- A session that is frozen in the middle of a claim holds its worker's row. What the worker held before that is taken
  -- all the same; what the claim may still bring is seen when it has been committed.
  v_frozen := array(
    select w.id from fenceline.worker w
    where w.stopped_at is null and w.lease_until < v_now - interval '2 seconds' and w.id <> all(v_lost));
  if cardinality(v_lost) + cardinality(v_frozen) > 0 then
    delete from fenceline.waiter where worker_id = any(v_lost);
    v_runs := array(
      select r from fenceline.running r where r.worker_id = any(v_lost || v_frozen)
      order by r.job_id for update skip locked);
    delete from fenceline.running r using unnest(v_runs) g where r.job_id = g.job_id and r.attempt_id = g.attempt_id;
    update fenceline.worker w set stopped_at = v_now
    where w.id = any(v_lost) and not exists (select 1 from fenceline.running r where r.worker_id = w.id);
    foreach v_run in array v_runs loop
      v_count := v_count + 1;
      perform fenceline.settle_if_final(v_run, fenceline.end_attempt(v_run, 'lost', p_error => jsonb_build_object(
        'code', 'lost', 'message', 'the worker was not heard of until its lease ended')));
    end loop;
  end if;

  for v_run in
    delete from fenceline.running d where d.job_id = any(array(
      select r.job_id from fenceline.running r
      where r.cancel_deadline is not null and r.cancel_deadline <= v_now for update skip locked))
    returning d.*
  loop
    v_count := v_count + 1;
    perform fenceline.settle_if_final(v_run, fenceline.end_attempt(v_run, 'cancelled',
      p_error => fenceline.cancelled_error(v_run.cancel_reason)));
  end loop;

  for v_stale in
    select r.job_id, n.on_stale, n.stale_timeout_seconds
    from fenceline.lane n
    join fenceline.running r on r.lane = n.name and r.counted
      and coalesce(r.active_at, r.started_at, r.claimed_at) < v_now - make_interval(secs => n.stale_timeout_seconds)
    where n.stale_timeout_seconds is not null
    for update of r skip locked
  loop
    delete from fenceline.running r where r.job_id = v_stale.job_id returning * into v_run;
    v_count := v_count + 1;
    perform fenceline.settle_if_final(v_run, fenceline.end_attempt(v_run,
      case v_stale.on_stale when 'fail' then 'failed_for_good' else 'lost' end,
      p_error => jsonb_build_object('code', 'stale', 'message',
        format('no sign of life for %s seconds', v_stale.stale_timeout_seconds))));
  end loop;
  return v_count;
end;
$$;

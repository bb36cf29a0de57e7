-- What a job does that a worker holds (explain_job): it runs, waits for a lock, is asked to stop; or its worker is frozen,
-- or dead.
-- roles: none
create or replace function fenceline.explain_running(p_job_id bigint, p_tenant text, p_created_by text) returns jsonb[]
language plpgsql stable as $$
declare
  v_now timestamptz := fenceline.clock();
  v_id text := fenceline.public_id(p_job_id);
  v_run fenceline.running;
  v_job fenceline.job;
  v_worker fenceline.worker;
  v_phase text;
  v_wait record;
  v_holder record;
  v_stale integer;
  v_since timestamptz;
  v_reasons jsonb[] := '{}';
begin
  select * into v_run from fenceline.running r where r.job_id = p_job_id;
  select * into v_job from fenceline.job j where j.id = p_job_id;
  select * into v_worker from fenceline.worker w where w.id = v_run.worker_id;
  select p.phase into v_phase from fenceline.progress p where p.job_id = p_job_id and p.attempt_id = v_run.attempt_id;
  if v_worker.stopped_at is not null or v_worker.lease_until < v_now then
    v_reasons := v_reasons || fenceline.reason('worker_lost',
      format('Its worker %s has not been heard of for %s. The next worker or server that looks takes the job back.',
             v_worker.name, fenceline.say_seconds(extract(epoch from v_now - v_worker.heartbeat_at))),
      v_worker.heartbeat_at, v_worker.lease_until, jsonb_build_object('worker', v_worker.name),
      array['fenceline sweep', 'fenceline worker APP']);
  end if;
  if v_run.cancel_requested_at is not null then
    v_reasons := v_reasons || fenceline.reason('stopping',
      format('It was asked to stop%s %s ago; its handler has until the grace period is over.',
             coalesce(' by ' || v_run.cancel_actor, ''),
             fenceline.say_seconds(extract(epoch from v_now - v_run.cancel_requested_at))),
      v_run.cancel_requested_at, v_run.cancel_deadline,
      jsonb_build_object('actor', v_run.cancel_actor, 'reason', v_run.cancel_reason, 'worker', v_worker.name),
      array['fenceline jobs cancel --force ' || v_id]);
  end if;
  if v_worker.blocked_at is not null then
    v_reasons := v_reasons || fenceline.reason('worker_blocked',
      format('The event loop of its worker %s has not turned for %s%s: nothing of that process goes on.', v_worker.name,
             fenceline.say_seconds(extract(epoch from v_now - v_worker.blocked_at)),
             case when v_worker.blocked_by = p_job_id then ', because of this job''s own handler'
                  else coalesce(', because of the handler of '
                                || fenceline.seen_job(v_worker.blocked_by, p_tenant, p_created_by), '') end),
      v_worker.blocked_at, null,
      jsonb_build_object('worker', v_worker.name,
                         'blocked_by', fenceline.seen_job(v_worker.blocked_by, p_tenant, p_created_by)),
      array(select 'fenceline jobs cancel --force ' || b from fenceline.seen_job(v_worker.blocked_by, p_tenant, p_created_by) b
            where b is not null));
  end if;
  select k.* into v_wait from fenceline.lock_wait k
  where k.job_id = p_job_id and k.attempt_id = v_run.attempt_id order by k.seq limit 1;
  if found then
    select fenceline.seen_job(a.job_id, p_tenant, p_created_by) as id, a.since, h.owner is not null as is_outside,
           case when h.actor = coalesce(p_created_by, h.actor) then h.actor end as actor
    into v_holder
    from fenceline.attempt_lock a
    left join fenceline.lock_lease h on h.owner = a.attempt_id
    where a.tenant = v_wait.tenant and a.namespace = v_wait.namespace and a.name = v_wait.name;
    v_reasons := v_reasons || fenceline.reason('lock',
      format('Its handler waits for the lock %s/%s%s.', v_wait.namespace, v_wait.name,
             case when v_holder.since is null then '' else
               format(', which %s has held for %s',
                      case when v_holder.is_outside then 'code outside jobs' || coalesce(' (' || v_holder.actor || ')', '')
                           else coalesce(v_holder.id, 'another job') end,
                      fenceline.say_seconds(extract(epoch from v_now - v_holder.since))) end),
      v_wait.since, null,
      jsonb_build_object('namespace', v_wait.namespace, 'name', v_wait.name, 'holder', v_holder.id,
                         'holder_actor', v_holder.actor, 'held_since', v_holder.since),
      case when v_holder.is_outside then array['fenceline locks']
           when v_holder.id is null then array['fenceline jobs locks ' || v_id]
           else array['fenceline jobs explain ' || v_holder.id, 'fenceline jobs cancel ' || v_holder.id] end);
  end if;
  v_stale := (select n.stale_timeout_seconds from fenceline.lane n where n.name = v_run.lane);
  v_since := coalesce(v_run.started_at, v_run.claimed_at);
  return v_reasons || fenceline.reason(
    case when v_run.started_at is null then 'claimed' else 'running' end,
    format(case when v_run.started_at is null then 'Worker %s has had it for %s (attempt %s of %s)%s.'
                else 'It runs on %s for %s (attempt %s of %s)%s.' end,
           coalesce(v_worker.name, v_run.worker_id::text),
           fenceline.say_seconds(extract(epoch from v_now - v_since)), v_run.number, v_job.max_attempts,
           coalesce(', in phase ' || v_phase, '') || coalesce('; last sign of life '
             || fenceline.say_seconds(extract(epoch from v_now - v_run.active_at)) || ' ago', '')),
    v_since,
    least(v_since + make_interval(secs => v_job.timeout_seconds),
          coalesce(v_run.active_at, v_since) + make_interval(secs => v_stale)),
    jsonb_build_object('worker', v_worker.name, 'attempt', v_run.number, 'max_attempts', v_job.max_attempts,
                       'phase', v_phase, 'active_at', v_run.active_at, 'timeout', v_job.timeout_seconds,
                       'stale_timeout_seconds', v_stale, 'alone', case when v_run.deaths is not null then true end),
    array['fenceline jobs watch ' || v_id, 'fenceline jobs cancel ' || v_id]);
end;
$$;

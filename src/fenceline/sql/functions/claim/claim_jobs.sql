-- Claims up to p_limit jobs of one lane for a worker: each becomes an attempt with a fresh fence (attempt_id) and a
-- higher token, in the lane's order.
--
-- p_kinds         the kinds the worker can run; null: those it registered with, or all. A runner that is bound to a
--                 tenant gets that tenant's jobs only. A job that is meant for a name or labels (option runner) goes to a
--                 worker or runner that has them, and to nobody else
-- p_request_id    makes a repeat safe: the same request again returns the attempts of the first that are still live
-- p_wait_seconds  when nothing is claimed, remember for so long that this worker waits, so that enqueue notifies it
-- p_alone         claim suspects, each to be run alone in a process (see pick_suspects)
-- p_floor_*       see pick_ready; honoured except once a second per lane and set of kinds, when late commits below them are looked for.
--                 With no priorities ('{}') the seqs are job ids: only these jobs are claimed (claim_named_jobs)
--
-- In a lane that a backend delivers only those are given out whom a message has named, and suspects.
--
-- Fleet-wide limits are exact: a lane with slots, a rate or fairness is claimed from under its lock, and what is in use
-- is counted after that, in a statement (and so a snapshot) of its own. Needs READ COMMITTED for that (FL016).
-- Lock order: keys (admit_keys), lane, ready rows (skip locked), worker. Raises FL001, FL016, and FL015 when there is
-- something to claim but the worker's lease is over.
-- roles: worker
create or replace function fenceline.claim_jobs(
  p_worker_id integer,
  p_lane text default 'default',
  p_limit integer default 1,
  p_kinds text[] default null,
  p_request_id uuid default null,
  p_wait_seconds double precision default null,
  p_alone boolean default false,
  p_floor_priorities smallint[] default null,
  p_floor_seqs bigint[] default null
) returns table (
  job_id bigint,
  attempt_id uuid,
  token bigint,
  number smallint,
  kind text,
  args json,
  tenant text,
  priority smallint,
  seq bigint,
  max_attempts smallint,
  timeout_seconds double precision,
  alone boolean,
  more jsonb
)
language plpgsql security definer
set search_path = pg_catalog, pg_temp
-- The plans must not depend on statistics, which are always wrong for tables as lively as these.
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set jit = off
as $$
declare
  v_now timestamptz := fenceline.clock();
  v_lane fenceline.lane;
  v_exclusive boolean;
  v_limit integer := least(greatest(p_limit, 0), 10000);
  v_kinds text[] := p_kinds;
  v_tenant text;
  v_claimer jsonb := fenceline.claimer(p_worker_id);
  v_worker record;
  v_pick record;
  v_found boolean := false;
  v_named boolean := p_floor_priorities = '{}' and cardinality(p_floor_seqs) > 0;
  v_shift integer;
  v_timeline bigint;
begin
  perform fenceline.require_read_committed('claim_jobs');
  select * into v_lane from fenceline.lane l where l.name = p_lane;
  if not found then
    raise exception using errcode = 'FL001', message = format('lane %L does not exist', p_lane);
  end if;
  if p_request_id is not null and exists (
    select 1 from fenceline.claim_request q where q.request_id = p_request_id and q.worker_id = p_worker_id) then
    return query select * from fenceline.claimed_before(p_worker_id, p_request_id);
    return;
  end if;
  select case when w.runner then fenceline.runner_kinds(coalesce(p_kinds, w.kinds)) else coalesce(p_kinds, w.kinds) end,
         w.tenant
    into v_kinds, v_tenant
  from fenceline.worker w where w.id = p_worker_id;

  if exists (select 1 from fenceline.key_check c where c.id >= fenceline.id_at(v_now - interval '2 seconds')) then
    perform fenceline.admit_keys(fenceline.id_at(v_now - interval '2 seconds'));
  end if;

  v_exclusive := v_lane.slots is not null or v_lane.rate_per_second is not null or v_lane.fair;
  if not fenceline.take_advisory_lock(1179926085, hashtext(p_lane), not v_exclusive) then
    return;  -- nothing now: other lanes must not wait for this one
  end if;
  -- Again, now that the lane cannot change: set_lane takes the same lock.
  select * into v_lane from fenceline.lane l where l.name = p_lane;
  if not v_lane.enabled or (v_lane.delivery <> 'postgres' and v_named is not true and not p_alone)
     or (not v_exclusive and (v_lane.slots is not null or v_lane.rate_per_second is not null or v_lane.fair)) then
    return;
  end if;
  if v_lane.slots is not null then
    v_limit := least(v_limit, fenceline.free_slots(v_lane));
  end if;
  if v_lane.rate_per_second is not null and v_limit > 0 then
    v_limit := least(v_limit, floor(fenceline.await_token(v_lane)))::integer;
  end if;

  if v_limit > 0 then
    if v_named then
      v_pick := fenceline.pick_named(p_lane, v_tenant, v_kinds, v_limit, v_claimer, p_floor_seqs);
    elsif p_alone then
      v_pick := fenceline.pick_suspects(p_lane, v_tenant, v_kinds, v_limit, v_claimer);
    elsif v_tenant is not null then
      v_pick := fenceline.pick_tenant(p_lane, v_tenant, v_kinds, v_limit, p_alone, v_lane.fair, v_claimer);
    elsif v_lane.fair then
      v_pick := fenceline.pick_fair(p_lane, v_kinds, v_limit, p_alone, v_claimer);
      if cardinality(v_pick.rows) = 0 then
        -- A job whose enqueue was open while the lane became fair comes last until it is marked as such (rank_late_jobs).
        v_pick := fenceline.pick_ready(p_lane, v_kinds, v_limit, p_alone, null, null, v_claimer);
      end if;
    elsif p_floor_priorities is null or v_lane.ageing_seconds is not null
          or fenceline.is_scan_due(p_lane, v_kinds) then
      v_pick := fenceline.pick_ready(p_lane, v_kinds, v_limit, p_alone, null, null, v_claimer);
    else
      v_pick := fenceline.pick_ready(p_lane, v_kinds, v_limit, p_alone, p_floor_priorities, p_floor_seqs, v_claimer);
    end if;
    v_found := cardinality(v_pick.rows) > 0;
  end if;
  if not v_found then
    if p_wait_seconds is not null then
      perform fenceline.start_waiting(p_worker_id, p_lane, p_wait_seconds, v_now);
    end if;
    return;
  end if;

  -- After the lane's lock has been waited for: those before us have charged the rate until then, and what made the picked
  -- jobs ready was not later than their claim.
  v_now := fenceline.clock();
  -- Held against the sweep: a worker whose lease is over gets nothing, and one that is swept now waits here.
  select w.lease_until into v_worker from fenceline.worker w
  where w.id = p_worker_id and w.stopped_at is null and w.lease_until > v_now for key share;
  if not found then
    -- It was not over when somebody looked last, and that is long ago: the clock may have been set forward. The next look
    -- decides (absorb_step, sweep).
    select w.lease_until into v_worker from fenceline.worker w
    where w.id = p_worker_id and w.stopped_at is null and w.lease_until > (
      select m.ran_at from fenceline.maintenance m where m.task = 'live' and m.ran_at < v_now - interval '5 seconds')
    for key share;
  end if;
  if not found then
    raise exception using errcode = 'FL015',
      message = format('worker %s is not registered or its lease is over: register again', p_worker_id);
  end if;
  if p_request_id is not null then
    insert into fenceline.claim_request (request_id, worker_id, at) values (p_request_id, p_worker_id, v_now)
    on conflict (request_id) do update set worker_id = excluded.worker_id, at = excluded.at
      where claim_request.worker_id <> excluded.worker_id;  -- a worker that had to register again
    if not found then
      -- The first was still under way when we looked; it has committed now. Nothing has been taken yet.
      return query select * from fenceline.claimed_before(p_worker_id, p_request_id);
      return;
    end if;
  end if;
  if v_pick.uses & 48 /* expires + compares hash */ <> 0 then
    perform fenceline.refuse_claims(v_pick.rows, v_now);
  end if;
  if v_lane.rate_per_second is not null then  -- those that start, not those that were refused just now
    perform fenceline.take_tokens(v_lane, v_now, (
      select count(*)::integer from fenceline.ready r where r.ctid = any(v_pick.rows)));
  end if;
  if exists (select 1 from fenceline.waiter w where w.lane = p_lane and w.worker_id = p_worker_id) then
    delete from fenceline.waiter w where w.lane = p_lane and w.worker_id = p_worker_id;
  end if;
  if exists (select 1 from fenceline.follow) then
    perform fenceline.tell_followers(array(
      select r.job_id from fenceline.ready r where r.ctid = any(v_pick.rows)));
  end if;

  -- The timeline in the high bits: after a failover that lost a claim, the next token is higher all the same.
  v_timeline := fenceline.timeline() << 32;
  v_shift := coalesce(v_lane.ageing_seconds, 0);
  return query
  with picked as materialized (
    delete from fenceline.ready r where r.ctid = any(v_pick.rows)
    returning r.job_id, r.seq as rank, r.priority as level, r.kind, r.tenant,
              coalesce(r.own_priority, r.priority) as priority,
              fenceline.aged_seq(r.seq, -coalesce(r.own_priority, 0), v_shift) as seq,
              gen_random_uuid() as attempt_id, greatest(coalesce(r.token, 0), v_timeline) + 1 as token,
              (coalesce(r.number, 0) + 1)::smallint as number, r.deaths, r.uses
  ), claimed as (
    insert into fenceline.running (job_id, token, claimed_at, worker_id, attempt_id, number, priority, lane, seq,
                                   request_id, uses, deaths, counted)
    select p.job_id, p.token, v_now, p_worker_id, p.attempt_id, p.number, p.priority, p_lane, nullif(p.seq, p.job_id),
           p_request_id, p.uses, p.deaths,
           case when v_lane.slots is not null or v_lane.stale_timeout_seconds is not null then true end
    from picked p
  )
  select p.job_id, p.attempt_id, p.token, p.number, p.kind, j.args, p.tenant, p.priority, p.rank, j.max_attempts,
         j.timeout_seconds, p.deaths is not null,
         -- A plain job has nothing more to tell but who made it; building all of it costs as much as the rest of the row.
         case when num_nonnulls(j.labels, j.expires_at, j.key, j.snapshot, j.requires_hash, j.identity,
                                j.after, j.group_name, j.retry_of, j.parent, j.resource_lock, j.run_at,
                                j.traceparent, j.runner, j.dedupe_key) > 0 or p.uses & 128 /* tells start */ <> 0
              then fenceline.attempt_details(p.job_id, p.uses)
              when j.retry is not null then jsonb_build_object('created_by', j.created_by, 'retry', j.retry)
              when j.created_by is not null then jsonb_build_object('created_by', j.created_by) end
  from picked p join fenceline.job j on j.id = p.job_id
  order by p.level desc, p.rank;
end;
$$;

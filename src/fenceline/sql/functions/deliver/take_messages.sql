-- The jobs that messages are to be sent for now, of lanes that p_delivery delivers, in each lane's order; they count as sent.
-- Whoever calls it sends one message for each, with the job's id and nothing else, after this transaction has committed.
--
-- The outbox is `ready` itself: what is claimable there and has no row in `message` is still to be sent, whoever made it
-- claimable, and whenever that was committed. Whoever dies before sending loses nothing: a message that no claim answers in
-- time counts as lost (resend_messages).
-- No more are sent than can be claimed: the backlog stays here, with its order, and p_window messages per lane are under way; in
-- a lane with slots or a rate as many as it has room for. Suspects are not sent: they are claimed from here (claim_jobs).
--
-- p_lanes         null: all that p_delivery delivers
-- p_worker_id, p_wait_seconds   with nothing to send, remember that this worker waits (see claim_jobs)
-- Needs READ COMMITTED (FL016). Lock order: keys, lanes by name, ready rows.
-- roles: producer, worker
create or replace function fenceline.take_messages(
  p_delivery text,
  p_lanes text[] default null,
  p_window integer default 500,
  p_worker_id integer default null,
  p_wait_seconds double precision default null
) returns table (job_id bigint, lane text, priority smallint, seq bigint)
language plpgsql security definer set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off
-- Always in the order of ready_order, whatever the planner believes.
set enable_sort = off set enable_bitmapscan = off
as $$
declare
  v_now timestamptz := fenceline.clock();
  v_name text;
  v_lane fenceline.lane;
  v_room integer;
begin
  perform fenceline.require_read_committed('take_messages');
  if exists (select 1 from fenceline.key_check c where c.id >= fenceline.id_at(v_now - interval '2 seconds')) then
    perform fenceline.admit_keys(fenceline.id_at(v_now - interval '2 seconds'));
  end if;
  for v_name in
    select l.name from fenceline.lane l
    where l.delivery = p_delivery and (p_lanes is null or l.name = any(p_lanes)) order by l.name
  loop
    -- One at a time, or two would send more than there is room for, and out of order.
    continue when not fenceline.take_advisory_lock(1179926091, hashtext(v_name));
    select * into v_lane from fenceline.lane l where l.name = v_name and l.enabled and l.delivery = p_delivery;
    continue when not found;
    v_room := least(p_window, fenceline.free_slots(v_lane),
                    case when v_lane.rate_per_second is not null
                         then floor(fenceline.rate_tokens(v_lane, fenceline.clock()))::integer end)
              - (select count(*)::integer from fenceline.message m where m.lane = v_name);
    return query
    with unsent as materialized (
      select r.job_id, coalesce(r.own_priority, r.priority) as priority, r.seq
      from fenceline.ready r
      where r.lane = v_name and r.deaths is null
        and not exists (select 1 from fenceline.message m where m.job_id = r.job_id)
      order by r.lane, r.priority desc, r.seq limit greatest(v_room, 0)
    ), sent as (
      insert into fenceline.message (job_id, lane, sent_at) select u.job_id, v_name, v_now from unsent u
      on conflict do nothing
    )
    select u.job_id, v_name, u.priority, u.seq from unsent u;
    if not found and p_worker_id is not null and p_wait_seconds is not null then
      perform fenceline.start_waiting(p_worker_id, v_name, p_wait_seconds, v_now);
    end if;
  end loop;
end;
$$;

-- Takes ended jobs off the lists of those that wait for them: one sorted decrement per waiter and call. A waiter with
-- nothing left to wait for goes on to its next gate. Returns the waiters that ended because they can no longer run,
-- or null.
-- roles: none
create or replace function fenceline.advance_waiters(p_ended bigint[]) returns bigint[]
language plpgsql as $$
declare
  v_waiter record;
  v_advance fenceline.live[];
  v_buried bigint[];
  v_ids bigint[];
  v_counts integer[];
  v_failed bigint[];
begin
  with gone as (
    delete from fenceline.dependency d where d.after_id = any(p_ended) returning d.waiter_id, d.after_id
  ), counted as (
    select g.waiter_id, count(*)::integer as n,
           -- No outcome: it ended and was deleted before this list became visible (verify_dependencies).
           min(g.after_id) filter (where coalesce(h.outcome, '') not in ('succeeded', 'succeeded_with_errors')) as failed
    from gone g left join fenceline.history h on h.job_id = g.after_id and h.final
    group by g.waiter_id
  )
  select array_agg(waiter_id order by waiter_id), array_agg(n order by waiter_id),
         array_agg(failed order by waiter_id)
    into v_ids, v_counts, v_failed
  from counted;
  if v_ids is null then
    return null;
  end if;

  -- Sorted: two finishers that free the same waiters never wait for each other in a circle.
  for v_waiter in
    select h.job_id, h.waiting_for, h.pending - c.n as left_to_wait, c.failed, j.after_policy,
           row(h.job_id, h.seq, h.priority, h.lane, h.kind, h.tenant, h.number, h.token, h.deaths, h.uses,
               h.run_at)::fenceline.live as live
    from unnest(v_ids, v_counts, v_failed) c(waiter_id, n, failed)
    join fenceline.held h on h.job_id = c.waiter_id
    join fenceline.job j on j.id = c.waiter_id
    order by c.waiter_id
    for update of h
  loop
    if v_waiter.failed is not null and v_waiter.after_policy = 'success' then
      v_buried := v_buried || fenceline.bury_waiting(
        array[v_waiter.job_id], 'cancelled', fenceline.dependency_error(v_waiter.failed), null);
    elsif v_waiter.left_to_wait = 0 and v_waiter.waiting_for = 'dependencies' then
      v_advance := v_advance || v_waiter.live;
    else
      update fenceline.held set pending = v_waiter.left_to_wait where job_id = v_waiter.job_id;
    end if;
  end loop;
  if v_advance is not null then
    perform fenceline.release_held(v_advance);
  end if;
  return v_buried;
end;
$$;

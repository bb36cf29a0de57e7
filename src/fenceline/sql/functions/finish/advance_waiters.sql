-- Takes ended jobs off the lists of those that wait for them: one sorted decrement per waiter and call. A waiter with
-- nothing left to wait for goes on to its next gate. Returns the waiters that ended because they can no longer run,
-- or null.
-- A waiter that a user's open transaction holds is not waited for, because other jobs end here too: its list stays as it
-- is, and verify_dependencies looks at it again.
-- Lock order: held rows by job id (lock_waiters).
-- roles: none
create or replace function fenceline.advance_waiters(p_ended bigint[]) returns bigint[]
language plpgsql as $$
declare
  v_waiters bigint[];
  v_held_by_others bigint[];
  v_waiter record;
  v_advance fenceline.live[];
  v_buried bigint[];
  v_ids bigint[];
  v_counts integer[];
  v_failed bigint[];
begin
  v_waiters := array(
    select distinct d.waiter_id from fenceline.dependency d where d.after_id = any(p_ended) order by d.waiter_id);
  if cardinality(v_waiters) = 0 then
    return null;
  end if;
  v_held_by_others := fenceline.lock_waiters(v_waiters);
  if v_held_by_others is not null then
    insert into fenceline.dependency_check (waiter_id) select w from unnest(v_held_by_others) w
    on conflict (waiter_id) do update set seen_xid = null;
    v_waiters := array(select w from unnest(v_waiters) w where w <> all(v_held_by_others));
  end if;
  with gone as (
    delete from fenceline.dependency d where d.after_id = any(p_ended) and d.waiter_id = any(v_waiters)
    returning d.waiter_id, d.after_id
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

  for v_waiter in
    select h.job_id, h.waiting_for, h.pending - c.n as left_to_wait, c.failed, j.after_policy,
           row(h.job_id, h.seq, h.priority, h.lane, h.kind, h.tenant, h.number, h.token, h.deaths, h.uses,
               h.run_at)::fenceline.live as live
    from unnest(v_ids, v_counts, v_failed) c(waiter_id, n, failed)
    join fenceline.held h on h.job_id = c.waiter_id
    join fenceline.job j on j.id = c.waiter_id
    order by c.waiter_id
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

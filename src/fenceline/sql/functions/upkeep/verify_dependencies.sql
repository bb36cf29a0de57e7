-- Closes the one gap of "enqueue only inserts": a job may end between the moment a waiter's enqueue looked at it and
-- the moment that enqueue became visible, and then nobody took it off the waiter's list.
--
-- A new waiter is looked at until every transaction that could have overlooked its list has ended: the first look
-- notes the newest transaction id there is, and the look after the oldest running one has passed it is the last. From
-- then on whoever ends a dependency sees the list. Returns how many waiters were looked at.
--
-- p_limit     at most so many new waiters, and so many others: those in turn, because they may have to be looked at again
--             and again while an old transaction is open anywhere on the server
--
-- Two more cases end here: a job that ended in a REPEATABLE READ transaction, whose snapshot may be older than the list
-- (settle then asks for a look at the ended job), and one that ended and was deleted before the list became visible.
-- roles: none
create or replace function fenceline.verify_dependencies(p_limit integer default 1000) returns integer
language plpgsql as $$
declare
  v_waiters bigint[];
  v_again bigint[];
  v_last bigint;
  v_ended bigint[];
  v_oldest xid8 := pg_snapshot_xmin(pg_current_snapshot());
  v_newest xid8 := pg_snapshot_xmax(pg_current_snapshot());
begin
  v_last := (select m.looked_at_waiter from fenceline.maintenance m where m.task = 'live');
  v_again := array(
    select c.waiter_id from fenceline.dependency_check c where c.waiter_id > coalesce(v_last, 0) and c.seen_xid is not null
    order by c.waiter_id limit p_limit for update skip locked);
  update fenceline.maintenance m
  set looked_at_waiter = case when cardinality(v_again) = p_limit then v_again[p_limit] end  -- null: from the start
  where m.task = 'live' and (v_last is not null or cardinality(v_again) = p_limit);
  v_waiters := v_again || array(
    select c.waiter_id from fenceline.dependency_check c where c.seen_xid is null
    order by c.waiter_id limit p_limit for update skip locked);
  if cardinality(v_waiters) = 0 then
    return 0;
  end if;
  select array_agg(distinct d.after_id) into v_ended
  from fenceline.dependency d
  where (d.waiter_id = any(v_waiters) or d.after_id = any(v_waiters))
    and (exists (select 1 from fenceline.history h where h.job_id = d.after_id and h.final)
         or not exists (select 1 from fenceline.job j where j.id = d.after_id));
  if v_ended is not null then
    v_ended := fenceline.advance_waiters(v_ended);
    if v_ended is not null then
      perform fenceline.settle(v_ended, 63);
    end if;
  end if;
  delete from fenceline.dependency_check where waiter_id = any(v_waiters) and seen_xid <= v_oldest;
  update fenceline.dependency_check set seen_xid = v_newest where waiter_id = any(v_waiters) and seen_xid is null;
  return cardinality(v_waiters);
end;
$$;

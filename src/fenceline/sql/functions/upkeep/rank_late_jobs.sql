-- Ranks queued jobs anew whose enqueue was open while their lane became fair, or began or stopped ageing (set_lane has not seen
-- them): in a busy lane they might stand behind all others for ever. What somebody holds is left for the next time.
-- Only lanes that were changed within a day are looked through, without a lock. Lock order: lanes by name, ready rows.
-- Caller runs in READ COMMITTED: the lane is read again under its lock.
-- roles: none
create or replace function fenceline.rank_late_jobs() returns void
language plpgsql as $$
declare
  v_late record;
  v_lane fenceline.lane;
begin
  for v_late in
    select n.name as lane, array_agg(r.job_id) as job_ids
    from fenceline.lane n join fenceline.ready r on r.lane = n.name
    where n.updated_at > fenceline.clock() - interval '1 day'
      and ((r.fair is true) <> n.fair or (r.own_priority is null) <> (n.ageing_seconds is null))
    group by n.name order by n.name
  loop
    continue when not fenceline.take_advisory_lock(1179926085, hashtext(v_late.lane), true);
    select * into v_lane from fenceline.lane n where n.name = v_late.lane;
    update fenceline.ready r
    set fair = nullif(v_lane.fair, false),
        -- As place_jobs has it; where ageing has stopped, a seq that is some hours off does no harm.
        seq = case when r.own_priority is null then fenceline.aged_seq(r.seq, r.priority, v_lane.ageing_seconds) else r.seq end,
        priority = case when v_lane.ageing_seconds is null then coalesce(r.own_priority, r.priority) else 0 end,
        own_priority = case when v_lane.ageing_seconds is not null then coalesce(r.own_priority, r.priority) end
    where r.job_id = any(array(
      select o.job_id from fenceline.ready o where o.job_id = any(v_late.job_ids) and o.lane = v_late.lane
      for update skip locked));
  end loop;
end;
$$;

-- Orders the queued jobs of a lane anew after its ageing has changed. Caller holds the lane's lock.
-- roles: none
create or replace function fenceline.rerank_lane(p_lane text, p_old_ageing integer, p_new_ageing integer) returns void
language sql as $$
  update fenceline.ready r
  set seq = fenceline.aged_seq(fenceline.aged_seq(r.seq, -coalesce(r.own_priority, 0), p_old_ageing),
                               coalesce(r.own_priority, r.priority), p_new_ageing),
      priority = case when p_new_ageing is null then coalesce(r.own_priority, r.priority) else 0 end,
      own_priority = case when p_new_ageing is not null then coalesce(r.own_priority, r.priority) end
  where r.lane = p_lane;
$$;

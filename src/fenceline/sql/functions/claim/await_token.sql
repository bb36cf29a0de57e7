-- How many claims a lane's rate limit allows, now or in a moment: when the next is due within 30 ms, and there is a job
-- for it, it is waited for here. What a worker comes late by is lost to a lane with a burst of 1, and nobody comes as
-- punctually as the server itself. Caller holds the lane's lock; others would get nothing meanwhile.
-- roles: none
create or replace function fenceline.await_token(p_lane fenceline.lane) returns double precision
language plpgsql as $$
declare
  v_tokens double precision;
  v_seconds double precision;
  v_due timestamptz;
begin
  -- A refill that lies ahead: the clock was set back. From now on, with what the bucket held.
  update fenceline.lane_state s set refilled_at = fenceline.clock()
  where s.lane = p_lane.name and s.refilled_at > fenceline.clock();
  v_tokens := fenceline.rate_tokens(p_lane, fenceline.clock());
  v_seconds := (1 - v_tokens) / p_lane.rate_per_second;
  if v_seconds > 0 and v_seconds <= 0.03
     and exists (select 1 from fenceline.ready r where r.lane = p_lane.name) then
    -- Not by fenceline.clock(), which a test may have stopped. pg_sleep takes whole milliseconds, rounded up, and then has
    -- to wake; so the last one is waited for awake.
    v_due := clock_timestamp() + make_interval(secs => v_seconds);
    perform pg_sleep(greatest(v_seconds - 0.0015, 0));
    while clock_timestamp() < v_due loop
      null;
    end loop;
    v_tokens := fenceline.rate_tokens(p_lane, fenceline.clock());
  end if;
  return v_tokens;
end;
$$;

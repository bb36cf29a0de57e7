-- How many claims a lane's rate limit allows right now. Caller holds the lane's lock.
--
-- Of a gap in which nobody has done the fleet's maintenance only a second counts, or the time of one claim: the clock may
-- have been set forward (absorb_step). A refill that lies ahead is one from before the clock was set back (await_token).
-- roles: none
create or replace function fenceline.rate_tokens(p_lane fenceline.lane, p_now timestamptz) returns double precision
language plpgsql stable as $$
declare
  v_most double precision := coalesce(p_lane.burst, greatest(1, p_lane.rate_per_second));
  v_state record;
  v_ran_at timestamptz;
  v_seconds double precision;
begin
  select s.tokens, s.refilled_at into v_state from fenceline.lane_state s
  where s.lane = p_lane.name and s.refilled_at is not null;
  if not found then
    return v_most;
  end if;
  v_seconds := greatest(0, extract(epoch from p_now - v_state.refilled_at)::double precision);
  select m.ran_at into v_ran_at from fenceline.maintenance m
  where m.task = 'live' and m.ran_at >= v_state.refilled_at and m.ran_at < p_now - interval '5 seconds';
  if found then
    v_seconds := extract(epoch from v_ran_at - v_state.refilled_at)::double precision
                 + greatest(1, 1 / p_lane.rate_per_second);
  end if;
  return least(v_most, v_state.tokens + p_lane.rate_per_second * v_seconds);
end;
$$;

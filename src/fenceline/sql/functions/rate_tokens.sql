-- How many claims a lane's rate limit allows right now. Caller holds the lane's lock.
-- roles: none
create or replace function fenceline.rate_tokens(p_lane fenceline.lane, p_now timestamptz) returns double precision
language plpgsql stable as $$
declare
  v_most double precision := coalesce(p_lane.burst, greatest(1, p_lane.rate_per_second));
  v_state record;
begin
  select s.tokens, s.refilled_at into v_state from fenceline.lane_state s
  where s.lane = p_lane.name and s.refilled_at is not null;
  if not found then
    return v_most;
  end if;
  return least(v_most, v_state.tokens
    + p_lane.rate_per_second * greatest(0, extract(epoch from p_now - v_state.refilled_at)::double precision));
end;
$$;

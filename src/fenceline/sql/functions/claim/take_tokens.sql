-- Charges claims to a lane's rate limit. Caller holds the lane's lock and has asked rate_tokens.
-- roles: none
create or replace function fenceline.take_tokens(p_lane fenceline.lane, p_now timestamptz, p_count integer) returns void
language sql as $$
  insert into fenceline.lane_state (lane, tokens, refilled_at)
  values (p_lane.name, fenceline.rate_tokens(p_lane, p_now) - p_count, p_now)
  on conflict (lane) do update set tokens = excluded.tokens, refilled_at = excluded.refilled_at;
$$;

-- In how many seconds the rate limits of lanes allow the next claim: 0, now. Lanes without a rate have no row. Whoever
-- claimed less than there was room for asks again then, or a moment earlier (see await_token).
-- roles: worker
create or replace function fenceline.rate_pauses(p_lanes text[]) returns table (lane text, seconds double precision)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select n.name, greatest(0, (1 - fenceline.rate_tokens(n, fenceline.clock())) / n.rate_per_second)
  from fenceline.lane n
  where n.name = any(p_lanes) and n.rate_per_second is not null;
$$;

-- How long somebody who serves these lanes (null: all) may be silent before they are offline: the shortest that the lanes
-- say, p_default for those that say nothing. A runner that does not ask for another has its lease for so long.
-- roles: worker
create or replace function fenceline.offline_seconds(p_lanes text[], p_default double precision default 60)
returns double precision
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select coalesce(min(coalesce(n.offline_timeout_seconds, p_default)), p_default)
  from fenceline.lane n where p_lanes is null or n.name = any(p_lanes);
$$;

-- What a worker must know of its lanes, read once per poll: settings, and whether suspects wait to be run alone.
-- p_lanes     the lanes it serves; null: all
-- roles: worker
create or replace function fenceline.worker_lanes(p_lanes text[] default null) returns table (
  name text, slots integer, poll_interval_ms integer, enabled boolean, limited boolean, suspects boolean
)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select n.name, n.slots, n.poll_interval_ms, n.enabled,
         n.slots is not null or n.rate_per_second is not null or n.fair,
         exists (select 1 from fenceline.ready r where r.lane = n.name and r.deaths is not null)
  from fenceline.lane n
  where p_lanes is null or n.name = any(p_lanes)
  order by n.name;
$$;

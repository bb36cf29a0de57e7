-- Lanes with jobs that could start, and no live worker that serves them, for p_seconds already.
-- roles: reader
create or replace function fenceline.unserved_lanes(p_seconds double precision) returns table (
  lane text, depth bigint, oldest_age_seconds double precision
)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select n.name, fenceline.depth(n.name), n.oldest_age_seconds
  from fenceline.lanes() n
  where n.enabled and n.oldest_age_seconds >= p_seconds
    and not exists (select 1 from fenceline.worker w where w.stopped_at is null and w.lease_until >= fenceline.clock()
                    and (w.lanes is null or n.name = any(w.lanes)));
$$;

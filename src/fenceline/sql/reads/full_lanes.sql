-- Lanes where jobs wait, all slots are in use, and a job has kept one for p_seconds already.
-- roles: reader
create or replace function fenceline.full_lanes(p_seconds double precision) returns table (
  lane text, slots integer, depth bigint, seconds double precision, holder text, holders bigint
)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select n.name, n.slots, (select count(*) from fenceline.ready r where r.lane = n.name),
         extract(epoch from fenceline.clock() - h.since)::double precision, fenceline.public_id(h.first), h.late
  from fenceline.lane n
  cross join lateral (
    select count(*) as used, min(r.claimed_at) as since, (array_agg(r.job_id order by r.claimed_at, r.job_id))[1] as first,
           count(*) filter (where r.claimed_at <= fenceline.clock() - make_interval(secs => p_seconds)) as late
    from fenceline.running r where r.counted and r.lane = n.name) h
  where n.enabled and n.slots > 0 and h.used >= n.slots and h.late > 0
    and exists (select 1 from fenceline.ready r where r.lane = n.name)
  order by n.name;
$$;

-- Every lane with its settings and what is measured: slots in use, depth, age of the oldest queued job.
-- p_tenant    measure only what this tenant has there; null: everything
-- roles: producer, worker, reader
create or replace function fenceline.lanes(p_name text default null, p_tenant text default null) returns table (
  name text, kinds text[], slots integer, in_use bigint, depth bigint, oldest_age_seconds double precision,
  poll_interval_ms integer, stale_timeout_seconds integer, on_stale text, enabled boolean, rate_per_second double precision,
  burst integer, fair boolean, ageing_seconds integer, default_priority smallint
)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select n.name, array(select k.name from fenceline.kind k where k.lane = n.name order by 1), n.slots,
         (select count(*) from fenceline.running r
          where r.lane = n.name
            and (p_tenant is null
                 or exists (select 1 from fenceline.job j where j.id = r.job_id and j.tenant = p_tenant))),
         (select count(*) from fenceline.ready r where r.lane = n.name and (p_tenant is null or r.tenant = p_tenant)),
         -- The oldest by id: seq is a rank in a lane with ageing.
         extract(epoch from fenceline.clock() - fenceline.id_time(
           (select min(greatest(r.seq, r.job_id)) from fenceline.ready r
            where r.lane = n.name and (p_tenant is null or r.tenant = p_tenant))))::double precision,
         n.poll_interval_ms, n.stale_timeout_seconds, n.on_stale, n.enabled, n.rate_per_second, n.burst, n.fair,
         n.ageing_seconds, n.default_priority
  from fenceline.lane n
  where p_name is null or n.name = p_name
  order by n.name;
$$;

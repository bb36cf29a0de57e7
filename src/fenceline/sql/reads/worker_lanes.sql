-- What a worker must know of its lanes, read once per poll: settings, and whether it is worth its while to claim. An idle
-- worker polls with this one statement, whatever the number of its lanes.
-- p_lanes     the lanes it serves; null: all
-- Returns, per lane: `limited` (by slots, rate or fairness), `suspects` (jobs of its kinds wait to be run alone), `ready` (any job
-- waits, also of kinds that this worker does not know), `wanted` (another worker waits for jobs of the lane),
-- `expected` (the worker was told to serve it, or it lists one of the worker's kinds).
-- roles: worker
create or replace function fenceline.worker_lanes(p_lanes text[] default null, p_worker_id integer default null)
returns table (
  name text, slots integer, poll_interval_ms integer, enabled boolean, limited boolean, suspects boolean, ready boolean,
  wanted boolean, expected boolean
)
language sql stable security definer set search_path = pg_catalog, pg_temp
-- As in claim_jobs: a plan that does not depend on statistics.
set enable_seqscan = off set enable_bitmapscan = off set jit = off
as $$
  select n.name, n.slots, n.poll_interval_ms, n.enabled,
         n.slots is not null or n.rate_per_second is not null or n.fair,
         exists (select 1 from fenceline.ready r
                 where r.lane = n.name and r.deaths is not null
                   and coalesce(r.runner <@ fenceline.claimer(p_worker_id), true)
                   and coalesce(r.kind = any((select w.kinds from fenceline.worker w where w.id = p_worker_id)::text[]), true)),
         -- Not `exists`, which would be answered for all lanes at once, from the whole backlog.
         coalesce((select true from fenceline.ready r where r.lane = n.name limit 1), false),
         exists (select 1 from fenceline.waiter w
                 where w.lane = n.name and w.worker_id <> p_worker_id and w.until > fenceline.clock()),
         p_lanes is not null or exists (
           select 1 from fenceline.kind k
           where k.lane = n.name and k.name = any((select w.kinds from fenceline.worker w where w.id = p_worker_id)::text[]))
  from fenceline.lane n
  where p_lanes is null or n.name = any(p_lanes)
  order by n.name;
$$;

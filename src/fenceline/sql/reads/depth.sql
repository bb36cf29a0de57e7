-- One number for autoscalers: jobs that a worker could start now (queued, due timers, attempts of dead workers) in a
-- lane, or in all; a lane that is drained counts 0.
-- roles: producer, worker, reader
create or replace function fenceline.depth(p_lane text default null) returns bigint
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  with lane as (select n.name from fenceline.lane n where n.enabled and (p_lane is null or n.name = p_lane))
  select (select count(*) from lane n join fenceline.ready r on r.lane = n.name)
       + (select count(*) from fenceline.timer t where t.run_at <= fenceline.clock() and t.lane in (select name from lane))
       + (select count(*) from fenceline.worker w join fenceline.running r on r.worker_id = w.id
          where w.stopped_at is null and w.lease_until < fenceline.clock() and r.lane in (select name from lane));
$$;

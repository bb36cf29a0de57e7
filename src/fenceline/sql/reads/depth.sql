-- One number for autoscalers: jobs that a worker could start now (queued, due timers, waits whose time is over, attempts of dead workers) in a
-- lane, or in all; a lane that is drained counts 0.
-- p_tenant    of this tenant only; null: of all
-- roles: producer, worker, reader
create or replace function fenceline.depth(p_lane text default null, p_tenant text default null) returns bigint
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  with lane as (select n.name from fenceline.lane n where n.enabled and (p_lane is null or n.name = p_lane))
  select (select count(*) from lane n join fenceline.ready r on r.lane = n.name
          where p_tenant is null or r.tenant = p_tenant)
       + (select count(*) from fenceline.timer t
          where t.run_at <= fenceline.clock() and t.lane in (select name from lane)
            and (p_tenant is null or t.tenant = p_tenant))
       + (select count(*) from fenceline.wait w join fenceline.held h on h.job_id = w.job_id and h.waiting_for = 'signal'
          where w.due_at <= fenceline.clock() and h.lane in (select name from lane)
            and (p_tenant is null or h.tenant = p_tenant))
       + (select count(*) from fenceline.worker w join fenceline.running r on r.worker_id = w.id
          where w.stopped_at is null and w.lease_until < fenceline.clock() and r.lane in (select name from lane)
            and (p_tenant is null
                 or exists (select 1 from fenceline.job j where j.id = r.job_id and j.tenant = p_tenant)));
$$;

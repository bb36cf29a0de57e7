-- The lanes in which a runner may find something to claim now, in the order given, or by name.
-- p_lanes     null: those it registered with, or all
-- p_request_id   of a claim that has been answered before: then every lane is named, because the answer is still there
-- Returns, per lane: `plain` (there are jobs), `suspects` (there are jobs to be run alone), `idle` (and the runner holds
-- nothing, so it could run one of those).
-- Raises as own_runner.
-- roles: worker
create or replace function fenceline.runner_lanes(p_runner_id integer, p_owner text, p_lanes text[] default null,
                                                  p_request_id uuid default null)
returns table (name text, plain boolean, suspects boolean, idle boolean)
language sql stable security definer set search_path = pg_catalog, pg_temp
-- As in claim_jobs: a plan that does not depend on statistics.
set enable_seqscan = off
as $$
  select s.name, s.plain or s.answered, s.suspects,
         s.suspects and not exists (select 1 from fenceline.running r where r.worker_id = p_runner_id)
  from (
    select n.name, array_position(coalesce(p_lanes, w.lanes), n.name) as place,
           exists (select 1 from fenceline.ready r
                   where r.lane = n.name and r.deaths is null and (w.tenant is null or r.tenant = w.tenant)) as plain,
           exists (select 1 from fenceline.ready r
                   where r.lane = n.name and r.deaths is not null and (w.tenant is null or r.tenant = w.tenant)) as suspects,
           exists (select 1 from fenceline.claim_request q
                   where q.request_id = p_request_id and q.worker_id = p_runner_id) as answered
    from fenceline.worker w
    join fenceline.lane n on n.enabled and (coalesce(p_lanes, w.lanes) is null or n.name = any(coalesce(p_lanes, w.lanes)))
    where w.id = fenceline.own_runner(p_runner_id, p_owner)
  ) s
  where s.plain or s.suspects or s.answered
  order by s.place, s.name;
$$;

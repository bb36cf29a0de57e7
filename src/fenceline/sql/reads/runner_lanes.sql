-- The lanes in which a runner may find something to claim now, in the order given, or by name.
-- p_lanes     null: those it registered with, or all
-- p_request_id   of the claim; in each lane it is made under an id of its own (`request_id`)
-- Returns, per lane: `plain` (there are jobs), `suspects` (there are jobs of its kinds to be run alone), `idle` (and the
-- runner holds nothing, so it could run one of those), `answered` (the same claim got jobs of it before; a drained lane too).
-- Raises as own_runner.
-- roles: worker
create or replace function fenceline.runner_lanes(p_runner_id integer, p_owner text, p_lanes text[] default null,
                                                  p_request_id uuid default null)
returns table (name text, request_id uuid, plain boolean, suspects boolean, idle boolean, answered boolean)
language sql stable security definer set search_path = pg_catalog, pg_temp
-- As in claim_jobs: a plan that does not depend on statistics.
set enable_seqscan = off set enable_bitmapscan = off set jit = off
as $$
  select s.name, s.request_id, s.plain, s.suspects,
         s.suspects and not exists (select 1 from fenceline.running r where r.worker_id = p_runner_id), s.answered
  from (
    select n.name, i.request_id, array_position(coalesce(p_lanes, w.lanes), n.name) as place,
           n.enabled and exists (
             select 1 from fenceline.ready r
             where r.lane = n.name and r.deaths is null and (w.tenant is null or r.tenant = w.tenant)
               and coalesce(r.runner <@ fenceline.claimer(w.id), true)) as plain,
           n.enabled and exists (
             select 1 from fenceline.ready r
             where r.lane = n.name and r.deaths is not null and (w.tenant is null or r.tenant = w.tenant)
               and (w.kinds is null or r.kind = any(w.kinds))
               and coalesce(r.runner <@ fenceline.claimer(w.id), true)) as suspects,
           exists (select 1 from fenceline.claim_request q
                   where q.request_id = i.request_id and q.worker_id = p_runner_id) as answered
    from fenceline.worker w
    join fenceline.lane n on coalesce(p_lanes, w.lanes) is null or n.name = any(coalesce(p_lanes, w.lanes))
    cross join lateral (
      select encode(substr(sha256(convert_to(p_request_id || ' ' || n.name, 'UTF8')), 1, 16), 'hex')::uuid) i(request_id)
    where w.id = fenceline.own_runner(p_runner_id, p_owner)
  ) s
  where s.plain or s.suspects or s.answered
  order by s.place, s.name;
$$;

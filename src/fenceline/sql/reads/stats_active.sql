-- Jobs that workers hold, those held longest first, with phase and progress; and how many there are per kind and phase.
--
-- p_labels    must all match; p_phase: only those in this phase
-- p_created_by  only what this actor enqueued; null: all
-- roles: reader
create or replace function fenceline.stats_active(
  p_tenant text default null,
  p_created_by text default null,
  p_kinds text[] default null,
  p_lanes text[] default null,
  p_labels jsonb default null,
  p_phase text default null,
  p_limit integer default 100
) returns jsonb
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  with active as (
    select r.job_id, j.kind, r.lane, j.tenant, j.labels, r.number as attempt, w.name as worker, p.phase,
           fenceline.cut_value(p.progress, 16384) as progress,
           case when r.started_at is null then 'claimed' else 'running' end as status, r.claimed_at, r.started_at,
           r.active_at, r.cancel_requested_at,
           extract(epoch from fenceline.clock() - r.claimed_at)::double precision as seconds
    from fenceline.running r
    join fenceline.job j on j.id = r.job_id
    left join fenceline.worker w on w.id = r.worker_id
    left join fenceline.progress p on p.job_id = r.job_id and p.attempt_id = r.attempt_id
    where (p_tenant is null or j.tenant = p_tenant) and (p_created_by is null or j.created_by = p_created_by)
      and (p_kinds is null or j.kind = any(p_kinds)) and (p_lanes is null or r.lane = any(p_lanes))
      and (p_labels is null or j.labels @> p_labels) and (p_phase is null or p.phase = p_phase)
  )
  select jsonb_build_object(
    'items', coalesce((
      select jsonb_agg(to_jsonb(a) - 'job_id' || jsonb_build_object('id', fenceline.public_id(a.job_id))
                       order by a.claimed_at, a.job_id)
      from (select * from active order by claimed_at, job_id limit p_limit) a), '[]'),
    'phases', coalesce((
      select jsonb_agg(jsonb_build_object('kind', g.kind, 'phase', g.phase, 'count', g.count) order by g.count desc, g.kind)
      from (select a.kind, a.phase, count(*) from active a group by a.kind, a.phase) g), '[]'));
$$;

-- What waits, by kind and lane: counts per status, and the age of the oldest. Looks at most at p_most rows of each table;
-- `is_complete` says whether that were all.
--
-- p_created_by  only what this actor enqueued; null: all
-- roles: reader
create or replace function fenceline.stats_waiting(
  p_tenant text default null,
  p_created_by text default null,
  p_most integer default 500000
) returns jsonb
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  with looked as (
    (select r.kind, r.lane, r.tenant, r.job_id, 'queued' as status from fenceline.ready r limit p_most)
    union all
    (select t.kind, t.lane, t.tenant, t.job_id, 'scheduled' from fenceline.timer t limit p_most)
    union all
    (select h.kind, h.lane, h.tenant, h.job_id,
            case h.waiting_for when 'approval' then 'awaiting_approval' else 'waiting' end
     from fenceline.held h limit p_most)
  ), counted as (
    select l.kind, l.lane, count(*) filter (where l.status = 'queued') as queued,
           count(*) filter (where l.status = 'scheduled') as scheduled,
           count(*) filter (where l.status = 'waiting') as waiting,
           count(*) filter (where l.status = 'awaiting_approval') as awaiting_approval,
           extract(epoch from fenceline.clock() - fenceline.id_time(min(l.job_id)))::double precision
             as oldest_age_seconds
    from looked l
    where (p_tenant is null or l.tenant = p_tenant)
      -- A probe for each: a join may be planned as a scan of all jobs there ever were.
      and (p_created_by is null or (select j.created_by from fenceline.job j where j.id = l.job_id) = p_created_by)
    group by l.kind, l.lane
  )
  select jsonb_build_object(
    'items', coalesce((select jsonb_agg(to_jsonb(c) order by c.queued + c.scheduled + c.waiting desc, c.kind, c.lane)
                       from counted c), '[]'),
    'is_complete', (select coalesce(max(n.rows), 0) < p_most
                    from (select count(*) as rows from looked l group by l.status = 'queued', l.status = 'scheduled') n));
$$;

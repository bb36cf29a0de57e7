-- The fleet at this moment, as JSON: whether it drains, every lane with what is measured and the jobs that use its slots
-- (the 100 oldest), workers and runners with their last heartbeat.
--
-- p_tenant    only this tenant's jobs count and are shown; null: all. Lanes and workers belong to everybody, a runner that
--             is bound to a tenant to that one.
-- A worker whose lease is over, or that was not heard of for as long as its lanes say (offline_timeout_seconds, else
-- p_offline_seconds), is `offline`; one that signed off is not
-- shown, and one that has been offline for a day neither.
-- roles: reader
create or replace function fenceline.fleet_status(p_tenant text default null, p_offline_seconds double precision default 60)
returns jsonb
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  with slot as (
    select r.lane, r.worker_id, r.claimed_at,
           row_number() over (partition by r.lane order by r.claimed_at, r.job_id) as place,
           jsonb_build_object(
             'id', fenceline.public_id(r.job_id), 'kind', j.kind, 'tenant', j.tenant, 'priority', r.priority,
             'status', case when r.started_at is null then 'claimed' else 'running' end, 'attempt', r.number,
             'claimed_at', r.claimed_at, 'started_at', r.started_at, 'active_at', r.active_at,
             'cancel_requested_at', r.cancel_requested_at, 'phase', p.phase, 'worker', w.name) as job
    from fenceline.running r
    join fenceline.job j on j.id = r.job_id and (p_tenant is null or j.tenant = p_tenant)
    left join fenceline.progress p on p.job_id = r.job_id and p.attempt_id = r.attempt_id
    left join fenceline.worker w on w.id = r.worker_id
  ), member as (
    select w.runner, w.name, w.id, jsonb_build_object(
      'id', w.id, 'name', w.name, 'host', w.host, 'pid', w.pid, 'version', w.version, 'lanes', w.lanes,
      'labels', w.labels, 'started_at', w.started_at, 'heartbeat_at', w.heartbeat_at,
      'status', case when w.lease_until < fenceline.clock()
                       or w.heartbeat_at < fenceline.clock() - make_interval(
                         secs => fenceline.offline_seconds(w.lanes, p_offline_seconds)) then 'offline'
                     else 'online' end,
      'in_use', (select count(*) from slot s where s.worker_id = w.id),
      'blocked_seconds', extract(epoch from fenceline.clock() - w.blocked_at),
      -- The job may be another tenant's.
      'blocked_by', case when p_tenant is null then fenceline.public_id(w.blocked_by) end) as json
    from fenceline.worker w
    -- Who signed off, did so before the lease was over; who was swept, after.
    where (w.stopped_at is null or w.stopped_at >= w.lease_until)
      and w.heartbeat_at > fenceline.clock() - interval '1 day'
      and (p_tenant is null or w.tenant is null or w.tenant = p_tenant)
  )
  select jsonb_build_object(
    'draining', (select s.draining from fenceline.setting s),
    'lanes', (
      select coalesce(jsonb_agg(n - 'default_priority' || jsonb_build_object('jobs', coalesce(
               (select jsonb_agg(s.job order by s.place) from slot s where s.lane = n ->> 'name' and s.place <= 100), '[]'))
               order by n ->> 'name'), '[]')
      from fenceline.describe_lanes(null, p_tenant) n),
    'workers', (select coalesce(jsonb_agg(m.json order by m.name, m.id), '[]') from member m where not m.runner),
    'runners', (select coalesce(jsonb_agg(m.json order by m.name, m.id), '[]') from member m where m.runner));
$$;

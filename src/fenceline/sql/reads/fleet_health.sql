-- The fleet in one look, as JSON: the database's time, whether the system drains, live workers' versions, workers whose
-- lease is over and who were not swept, timers (waits that end by themselves too) and schedules that are overdue, lanes that
-- are drained with jobs in them (and since when the first waits there), and how long ago maintenance and upkeep were done.
-- roles: reader
create or replace function fenceline.fleet_health() returns jsonb
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select jsonb_build_object(
    'clock', extract(epoch from fenceline.clock()),
    'draining', (select s.draining from fenceline.setting s),
    'versions', (select coalesce(jsonb_object_agg(v.version, v.workers), '{}') from (
       select coalesce(w.version, 'unknown') as version, count(*) as workers from fenceline.worker w
       where w.stopped_at is null and w.lease_until >= fenceline.clock() and not w.runner group by 1) v),
    'unswept', (select coalesce(jsonb_agg(jsonb_build_object('worker', w.name, 'attempts',
         (select count(*) from fenceline.running r where r.worker_id = w.id),
         'seconds', extract(epoch from fenceline.clock() - w.lease_until)) order by w.id), '[]')
       from fenceline.worker w where w.stopped_at is null and w.lease_until < fenceline.clock()),
    'overdue_timers', (select jsonb_build_object('jobs', count(*), 'seconds',
         extract(epoch from fenceline.clock() - min(d.due_at))) from (
       select t.run_at as due_at from fenceline.timer t where t.run_at <= fenceline.clock()
       union all select w.due_at from fenceline.wait w where w.due_at <= fenceline.clock()) d),
    'overdue_schedules', (select jsonb_build_object('schedules', count(*), 'seconds',
         extract(epoch from fenceline.clock() - min(s.due_at))) from fenceline.schedule s where s.due_at <= fenceline.clock()),
    'draining_since', (select e.at from fenceline.event e where e.subject = 'system' and e.action = 'system.drain'
       order by e.id desc limit 1),
    'drained', (select coalesce(jsonb_object_agg(n.name, d.jobs), '{}') from fenceline.lane n
       cross join lateral (select count(*) as jobs from fenceline.ready r where r.lane = n.name) d
       where not n.enabled and d.jobs > 0),
    'drained_since', (select coalesce(jsonb_object_agg(n.name, fenceline.id_time(d.first)), '{}') from fenceline.lane n
       cross join lateral (select min(r.job_id) as first from fenceline.ready r where r.lane = n.name) d
       where not n.enabled and d.first is not null),
    'ran', (select coalesce(jsonb_object_agg(m.task, extract(epoch from fenceline.clock() - m.ran_at)), '{}')
       from fenceline.maintenance m));
$$;

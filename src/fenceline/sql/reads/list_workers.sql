-- The workers that are signed on, oldest first, with what each is running and how many seconds of its lease are left
-- (negative: nobody has taken its jobs over yet). With p_stopped also those that stopped or were lost, newest 100.
-- roles: producer, worker, reader
create or replace function fenceline.list_workers(p_stopped boolean default false) returns table (
  id integer, name text, host text, pid integer, version text, runner boolean, lanes text[], kinds text[], labels jsonb,
  running bigint, started_at timestamptz, heartbeat_at timestamptz, lease_seconds double precision,
  lease_seconds_left double precision, stopped_at timestamptz
)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  with held as (select r.worker_id, count(*) as running from fenceline.running r group by r.worker_id)
  select w.id, w.name, w.host, w.pid, w.version, w.runner, w.lanes, w.kinds, w.labels, coalesce(h.running, 0), w.started_at,
         w.heartbeat_at, w.lease_seconds, extract(epoch from w.lease_until - fenceline.clock())::double precision,
         w.stopped_at
  from (
    select a.* from fenceline.worker a where a.stopped_at is null
    union all
    (select b.* from fenceline.worker b where p_stopped and b.stopped_at is not null order by b.id desc limit 100)
  ) w
  left join held h on h.worker_id = w.id
  order by w.stopped_at is not null, w.id;
$$;

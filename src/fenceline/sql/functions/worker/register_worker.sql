-- Registers a process that claims jobs, and returns its id. Its attempts stand and fall with its lease, which heartbeat
-- renews.
--
-- p_kinds     the kinds it has handlers for; null: all
-- p_tenant, p_owner   of a runner: whose jobs it may claim (null: everybody's), and who may write for it
-- Raises FL007 for a lease outside 0.1 to 86400 seconds, FL023 when p_owner has 1000 runners.
-- roles: worker
create or replace function fenceline.register_worker(
  p_name text,
  p_lease_seconds double precision default 30,
  p_kinds text[] default null,
  p_lanes text[] default null,
  p_host text default null,
  p_pid integer default null,
  p_version text default null,
  p_supervisor_id integer default null,
  p_runner boolean default false,
  p_labels jsonb default null,
  p_tenant text default null,
  p_owner text default null
) returns integer
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  c_most constant integer := 1000;
  v_id integer;
  v_now timestamptz := fenceline.clock();
begin
  if p_lease_seconds is null or not p_lease_seconds between 0.1 and 86400 then
    raise exception using errcode = 'FL007',
      message = format('lease of %s seconds is out of range: use 0.1 to 86400', p_lease_seconds);
  end if;
  if p_runner and (select count(*) from (select 1 from fenceline.worker w
                                         where w.stopped_at is null and w.owner = p_owner limit c_most) k) = c_most then
    raise exception using errcode = 'FL023',
      message = format('%s has %s runners that have not signed off: no more are registered', p_owner, c_most);
  end if;
  insert into fenceline.worker (name, host, pid, version, supervisor_id, runner, lanes, kinds, labels, lease_seconds,
                                lease_until, heartbeat_at, started_at, tenant, owner)
  values (left(coalesce(p_name, 'worker'), 200), p_host, p_pid, p_version, p_supervisor_id, p_runner, p_lanes,
          p_kinds, p_labels, p_lease_seconds, v_now + make_interval(secs => p_lease_seconds), v_now, v_now,
          p_tenant, p_owner)
  returning id into v_id;
  return v_id;
end;
$$;

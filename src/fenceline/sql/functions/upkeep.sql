-- What has to happen about once a minute somewhere, for the whole fleet: partitions ahead, retention, forgetting what only
-- had to be remembered for a while, lanes that jobs miss. Any worker or server may call it as often as it likes, the work
-- is done once per interval. In a transaction of its own, apart from `maintain`: it may read through a day's jobs, and drops partitions.
-- Returns how many jobs were forgotten; null when the work was not due.
-- roles: worker
create or replace function fenceline.upkeep(p_interval_seconds double precision default 60) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  if not fenceline.is_due('upkeep', p_interval_seconds) then
    return null;
  end if;
  perform fenceline.prune_requests();
  perform fenceline.prune_ticks();
  perform fenceline.restore_lanes();
  perform fenceline.create_partitions();
  -- Last: from here on enqueues may wait for the end of this transaction.
  return fenceline.prune();
end;
$$;

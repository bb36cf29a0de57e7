-- What has to happen about once a minute somewhere, for the whole fleet, and is quick: forgetting what only had to be
-- remembered for a while, lanes that jobs miss, jobs that missed a change of their lane. Any worker or server may call it as
-- often as it likes, the work is done once per interval. Returns whether it was due; then the caller sees to partitions and retention (create_partitions, drop_days,
-- jobs_to_forget, forget_finished), each in a transaction of its own.
-- Waits for no transaction that somebody leaves open: a part that would have to is undone, and comes the next time.
-- Needs READ COMMITTED (FL016).
-- roles: worker
create or replace function fenceline.tidy_up(p_interval_seconds double precision default 60) returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp set lock_timeout = '500ms' as $$
begin
  perform fenceline.require_read_committed('tidy_up');
  if not fenceline.is_due('upkeep', p_interval_seconds) then
    return false;
  end if;
  begin
    perform fenceline.prune_requests();
  exception when lock_not_available or deadlock_detected then null;
  end;
  begin
    perform fenceline.prune_ticks();
  exception when lock_not_available or deadlock_detected then null;
  end;
  begin
    perform fenceline.restore_lanes();
  exception when lock_not_available or deadlock_detected then null;
  end;
  begin
    perform fenceline.rank_late_jobs();
  exception when lock_not_available or deadlock_detected then null;
  end;
  return true;
end;
$$;

-- Takes a named lock for one block of a live attempt, or takes a place in the line for it. Who waits calls again: when
-- notified (channel fenceline_lock) and from time to time. A lock belongs to its attempt and holds nothing once that is
-- gone, however it ended.
--
-- p_owner     the block: a lock is not shared by the blocks of one job either
-- p_holding   owners of the blocks around it. Waits that lead back to one of them can never end.
-- Returns true when the lock is held, false when the caller waits.
-- Raises FL012 (stale), FL002 (namespace), FL007 (name), FL022 (the waits go round).
-- Lock order: the running row, then as line_up.
-- Needs READ COMMITTED (FL016).
-- roles: worker
create or replace function fenceline.take_lock(
  p_job_id bigint,
  p_attempt_id uuid,
  p_namespace text,
  p_name text,
  p_owner uuid,
  p_holding uuid[] default '{}'
) returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform fenceline.require_read_committed('take_lock');
  perform fenceline.check_lock_name(p_namespace, p_name);
  perform fenceline.live_attempt(p_job_id, p_attempt_id);
  return fenceline.line_up((select j.tenant from fenceline.job j where j.id = p_job_id), p_namespace, p_name, p_owner,
                           p_job_id, p_attempt_id, p_holding);
end;
$$;

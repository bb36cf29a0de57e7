-- A worker promises to tell (start_attempts) before a handler runs, where the attempt is the job's last, or the claim says
-- so (`tell_start` in `more`). In return an attempt of its that is lost before its start was told is refunded: see
-- end_attempt. Workers of 0.1.0 and most runners do not promise; what they lose counts.
-- Returns the worker's id.
-- roles: worker
create or replace function fenceline.promise_starts(p_worker_id integer) returns integer
language sql security definer set search_path = pg_catalog, pg_temp as $$
  update fenceline.worker set tells_starts = true where id = p_worker_id returning id;
$$;

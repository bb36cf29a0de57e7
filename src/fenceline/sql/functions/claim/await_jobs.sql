-- Notes that a runner waits for jobs of some lanes, so that enqueue notifies its server (channel fenceline_ready).
-- p_lanes     null: those it registered with, or all
-- Returns the lanes. Raises as own_runner.
-- roles: worker
create or replace function fenceline.await_jobs(
  p_runner_id integer,
  p_owner text,
  p_lanes text[],
  p_wait_seconds double precision
) returns text[]
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_lanes text[];
begin
  v_lanes := array(
    select n.name
    from fenceline.worker w
    join fenceline.lane n on coalesce(p_lanes, w.lanes) is null or n.name = any(coalesce(p_lanes, w.lanes))
    where w.id = fenceline.own_runner(p_runner_id, p_owner)
    order by n.name);
  perform fenceline.start_waiting(p_runner_id, n, p_wait_seconds, fenceline.clock()) from unnest(v_lanes) n;
  return v_lanes;
end;
$$;

-- A worker process died, and its supervisor says so at once instead of waiting for the lease: report_death, which waits
-- for whoever holds one of the attempts. Runners report by this.
--
-- p_suspects  the attempts whose handlers were running; null: all it held. The others are released.
-- Returns how many attempts were ended.
-- Lock order: worker row, running rows, then as settle.
-- Needs READ COMMITTED (FL016).
-- roles: worker
create or replace function fenceline.report_crash(
  p_worker_id integer,
  p_suspects uuid[] default null,
  p_error jsonb default null
) returns integer
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  -- In the lock order; report_death does not wait for the second.
  perform 1 from fenceline.worker w where w.id = p_worker_id for update;
  perform 1 from fenceline.running r where r.worker_id = p_worker_id order by r.job_id for update;
  return (fenceline.report_death(p_worker_id, jsonb_build_object('suspects', p_suspects, 'error', p_error))
          ->> 'ended')::integer;
end;
$$;

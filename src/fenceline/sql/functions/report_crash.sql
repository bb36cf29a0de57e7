-- A worker process died, and its supervisor says so at once instead of waiting for the lease.
--
-- p_suspects  the attempts whose handlers were running; null: all it held. The others are released.
-- One suspect: it killed its process alone (see end_crashed). Several: any of them may have done it, so all are refunded
-- and rerun alone. Returns how many attempts were ended.
-- Lock order: worker row, running rows.
-- roles: worker
create or replace function fenceline.report_crash(
  p_worker_id integer,
  p_suspects uuid[] default null,
  p_error jsonb default null
) returns integer
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_runs fenceline.running[];
  v_run fenceline.running;
  v_suspects integer;
begin
  -- Waits for a claim in flight (claim_jobs locks the row too), so that its attempts are seen below.
  perform 1 from fenceline.worker w where w.id = p_worker_id for update;
  update fenceline.worker set stopped_at = fenceline.clock() where id = p_worker_id and stopped_at is null;
  delete from fenceline.waiter where worker_id = p_worker_id;
  with gone as (delete from fenceline.running r where r.worker_id = p_worker_id returning r)
  select array_agg(g.r), count(*) filter (where p_suspects is null or (g.r).attempt_id = any(p_suspects))
    into v_runs, v_suspects
  from gone g;
  foreach v_run in array coalesce(v_runs, '{}') loop
    if p_suspects is not null and v_run.attempt_id <> all(p_suspects) then
      perform fenceline.settle_if_final(v_run, fenceline.end_attempt(v_run, 'released',
        p_metadata => '{"reason": "its process died"}'));
    else
      perform fenceline.end_crashed(v_run, coalesce(v_run.deaths, 0) + case when v_suspects = 1 then 1 else 0 end, p_error);
    end if;
  end loop;
  return coalesce(cardinality(v_runs), 0);
end;
$$;

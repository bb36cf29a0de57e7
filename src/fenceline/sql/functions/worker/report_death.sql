-- A worker process died or was killed, and whoever kept its lease says so at once instead of waiting for its end.
--
-- p_report    lists of attempts, and what is known of the death: {"suspects", "timed_out", "set_apart", "error"}
--   suspects    their handlers were running; null: all that it held. One: it killed its process alone (see end_crashed).
--               Several: any of them may have done it, so all are refunded and rerun alone
--   timed_out   they blocked the process past their timeout, so it was killed: `failed`, code `timeout`
--   set_apart   they blocked it past the timeout of others: refunded and rerun alone, and no death is counted
-- What else it held is released. Attempts whose rows somebody holds (an operator's open transaction) are left for the next
-- call, and until none is left the worker is not signed off, so that its lease ends them if nobody asks again.
-- Returns {"ended", "left": counts, "suspects": ids of the jobs that run alone from now on, "quarantined": ids of those that
-- have failed, because they did it again and again}.
-- Lock order: worker row, running rows (skip locked), then as settle.
-- Needs READ COMMITTED (FL016).
-- roles: worker
create or replace function fenceline.report_death(p_worker_id integer, p_report jsonb) returns jsonb
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_suspects uuid[] := fenceline.attempt_ids(p_report -> 'suspects');
  v_timed_out uuid[] := coalesce(fenceline.attempt_ids(p_report -> 'timed_out'), '{}');
  v_set_apart uuid[] := coalesce(fenceline.attempt_ids(p_report -> 'set_apart'), '{}');
  v_runs fenceline.running[];
  v_run fenceline.running;
  v_left integer;
  v_alone boolean;
  v_named text[] := '{}';
  v_quarantined text[];
begin
  perform fenceline.require_read_committed('report_death');
  -- Waits for a claim in flight (claim_jobs locks the row too), so that its attempts are seen below.
  perform 1 from fenceline.worker w where w.id = p_worker_id for update;
  v_runs := array(
    select r from fenceline.running r where r.worker_id = p_worker_id order by r.job_id for update skip locked);
  delete from fenceline.running r using unnest(v_runs) g where r.job_id = g.job_id and r.attempt_id = g.attempt_id;
  v_left := (select count(*) from fenceline.running r where r.worker_id = p_worker_id);
  if v_left = 0 then
    update fenceline.worker set stopped_at = fenceline.clock() where id = p_worker_id and stopped_at is null;
  end if;
  delete from fenceline.waiter where worker_id = p_worker_id;

  -- As many as were running, not as many as are left to be ended here: the others may have done it too.
  v_alone := coalesce(cardinality(v_suspects), cardinality(v_runs) + v_left) = 1;
  foreach v_run in array v_runs loop
    if v_run.attempt_id = any(v_timed_out) then
      perform fenceline.settle_if_final(v_run, fenceline.end_attempt(v_run, 'failed', p_error => jsonb_build_object(
        'code', 'timeout', 'type', 'TimeoutError', 'message', format(
          'the handler ran longer than its timeout of %s seconds and blocked its process, which was killed',
          (select j.timeout_seconds from fenceline.job j where j.id = v_run.job_id)))));
    elsif v_run.attempt_id = any(v_set_apart) then
      perform fenceline.end_crashed(v_run, coalesce(v_run.deaths, 0), jsonb_build_object(
        'message', 'the handler blocked its process past the timeout of another job'));
      v_named := v_named || fenceline.public_id(v_run.job_id);
    elsif v_suspects is null or v_run.attempt_id = any(v_suspects) then
      perform fenceline.end_crashed(v_run, coalesce(v_run.deaths, 0) + v_alone::integer, nullif(p_report -> 'error', 'null'));
      v_named := v_named || fenceline.public_id(v_run.job_id);
    else
      perform fenceline.settle_if_final(v_run, fenceline.end_attempt(v_run, 'released',
        p_metadata => '{"reason": "its process died"}'));
    end if;
  end loop;
  v_quarantined := array(
    select fenceline.public_id(g.job_id) from unnest(v_runs) g
    cross join lateral fenceline.ended_attempt(g.job_id, g.attempt_id) h where h.asked = 'quarantined');
  v_named := array(select n from unnest(v_named) with ordinality as t(n, place) where n <> all(v_quarantined) order by place);
  return jsonb_build_object('ended', cardinality(v_runs), 'left', v_left, 'suspects', v_named,
                            'quarantined', v_quarantined);
end;
$$;

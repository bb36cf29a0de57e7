-- Forgets what only had to be remembered for a while: answered claims, idempotency keys, waiters, workers long gone.
-- roles: none
create or replace function fenceline.prune_requests() returns void
language plpgsql as $$
declare
  v_now timestamptz := fenceline.clock();
begin
  delete from fenceline.claim_request where at < v_now - interval '1 hour';
  delete from fenceline.lane_scan where scanned_at < v_now - interval '1 hour';
  delete from fenceline.idempotency where expires_at < v_now;
  delete from fenceline.waiter where until < v_now;
  delete from fenceline.watch where until < v_now;
  delete from fenceline.follow where until < v_now;
  delete from fenceline.callback where expires_at < v_now;
  delete from fenceline.trigger_seen where until < v_now;
  -- Rows of attempts that are gone: they hold nothing, and are only in the way of who looks.
  delete from fenceline.attempt_lock l
  where l.since < v_now - interval '1 minute' and not fenceline.is_holding(l.job_id, l.attempt_id);
  delete from fenceline.lock_wait l
  where l.since < v_now - interval '1 minute' and not fenceline.is_holding(l.job_id, l.attempt_id);
  -- History names workers by id, so they stay as long as history does.
  delete from fenceline.worker w
  where w.stopped_at < v_now - make_interval(secs => (select s.retention_seconds from fenceline.setting s) + 86400);
end;
$$;

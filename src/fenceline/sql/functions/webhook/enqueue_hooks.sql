-- Enqueues the deliveries that hooks ask for, for jobs that have just ended: in their own transaction, so exactly when they
-- end. What delivers, is itself not reported.
-- roles: none
create or replace function fenceline.enqueue_hooks(p_job_ids bigint[]) returns void
language plpgsql as $$
declare
  v_due record;
begin
  for v_due in
    select k.id, k.tenant, array_agg(json_build_object('hook', k.id, 'job', fenceline.public_id(j.id)) order by j.id) as args
    from unnest(p_job_ids) i
    join fenceline.job j on j.id = i
    join fenceline.history h on h.job_id = i and h.final
    join fenceline.hook k on k.tenant = j.tenant and h.outcome = any(k.statuses)
      and (k.kinds is null or j.kind = any(k.kinds))
    where j.kind <> 'fenceline.webhook'
    group by k.id, k.tenant
    order by k.id
  loop
    -- An operator may have deleted the lane; that must not keep a job from ending. Nor must one who is changing it: where
    -- it is there, it is not asked for a second time, which would wait for him.
    insert into fenceline.lane (name, slots, poll_interval_ms, stale_timeout_seconds, fair)
    select 'webhooks', 50, 1000, 300, true where not exists (select 1 from fenceline.lane n where n.name = 'webhooks')
    on conflict do nothing;
    perform fenceline.insert_jobs('fenceline.webhook', v_due.args, json_build_object(
        'tenant', v_due.tenant, 'lane', 'webhooks', 'max_attempts', 12,
        'retry', json_build_object('backoff', 'exponential', 'base', 5, 'jitter', 0.2, 'max_delay', 3600)),
      'hook:' || v_due.id, null, 'child');
  end loop;
end;
$$;

-- What happened to a job, first to last: made, claimed, started, ended, late writes refused, and everything that people did to it.
-- `actor` is a person or a worker; `details` is what is known besides.
-- roles: producer, worker, reader
create or replace function fenceline.job_events(p_job_id bigint)
returns table (at timestamptz, event text, actor text, reason text, details jsonb)
language sql stable security definer set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off as $$
  with attempt as (
    select a.*, jsonb_build_object('attempt', a.number, 'attempt_id', a.attempt_id) as named
    from fenceline.list_attempts(p_job_id) a
  )
  select e.at, e.event, e.actor, e.reason, jsonb_strip_nulls(e.details)
  from (
    select fenceline.id_time(j.id) as at, 1 as place, 'job.enqueue' as event, j.created_by as actor, null::text as reason,
           jsonb_build_object('kind', j.kind, 'lane', j.lane, 'retry_of', fenceline.public_id(j.retry_of)) as details
    from fenceline.job j where j.id = p_job_id
    union all
    select a.claimed_at, 3, 'attempt.claim', a.worker, null, a.named from attempt a where a.attempt_id is not null
    union all
    -- A live attempt has no start yet, or one of its own; list_attempts fills in the claim's time for the others.
    select a.started_at, 4, 'attempt.start', a.worker, null, a.named from attempt a
    where a.attempt_id is not null
      and (a.ended_at is not null
           or exists (select 1 from fenceline.running r where r.job_id = p_job_id and r.started_at is not null))
    union all
    select a.ended_at, 5, case when a.attempt_id is null then 'job.end' else 'attempt.end' end, coalesce(a.actor, a.worker),
           a.error ->> 'message',
           coalesce(case when a.attempt_id is not null then a.named end, '{}') || jsonb_build_object(
             'outcome', a.outcome, 'final', a.final, 'error', a.error, 'metadata', a.metadata)
    from attempt a where a.ended_at is not null
    union all
    select min(w.first_at), 6, 'attempt.refused', a.worker, null,
           a.named || jsonb_build_object('writes', jsonb_object_agg(w.write, w.times), 'last_at', max(w.last_at))
    from fenceline.refused_write w join attempt a on a.attempt_id = w.attempt_id
    where w.job_id = p_job_id group by a.attempt_id, a.worker, a.named
    union all
    select v.at, 2, v.action, v.actor, v.reason, jsonb_build_object('before', v.before, 'after', v.after)
    from fenceline.event v where v.subject = fenceline.public_id(p_job_id)
  ) e
  order by e.at, e.place;
$$;

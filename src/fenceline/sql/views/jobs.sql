-- Every job with its status: the public face of the state machine.
--
-- One arm per table that a job can be in. A filter on status reaches the arms, and the planner drops those that cannot
-- match. `id` is the public id; `job_id` the internal one, and the indexed one. What was said at enqueue stands last, the
-- `snapshot`, which may be long, at the very end: JSON of a job leaves it out (describe_job).
-- roles: reader
create or replace view fenceline.jobs as
select fenceline.public_id(r.job_id) as id, r.kind, 'queued'::text as status, null::text as waiting_for, r.lane,
       coalesce(r.own_priority, r.priority) as priority, r.tenant, j.args::jsonb as args, j.labels, coalesce(r.number, 0::smallint) as attempt,
       j.max_attempts, fenceline.id_time(r.job_id) as created_at, j.created_by, j.run_at,
       null::timestamptz as claimed_at, null::timestamptz as started_at, null::timestamptz as finished_at,
       null::text as worker, null::text as phase, null::jsonb as progress, null::jsonb as result, null::jsonb as error,
       null::jsonb as errors, null::timestamptz as cancel_requested_at, fenceline.public_id(j.retry_of) as retry_of,
       fenceline.public_id(j.parent) as parent, coalesce(j.delivery, 'postgres') as delivery,
       fenceline.message_id(j.id, j.delivery, j.backend_job_id) as backend_job_id,
       r.job_id, j.runner, j.snapshot_hash, j.requires_hash, j.identity, fenceline.public_ids(j.after) as after, j.key, j.key_limit,
       j.resource_lock, j.dedupe_key, j.expires_at, j.timeout_seconds as timeout, j.group_name as "group", j.retry, j.snapshot
from fenceline.ready r left join fenceline.job j on j.id = r.job_id
union all
select fenceline.public_id(r.job_id), j.kind, case when r.started_at is null then 'claimed' else 'running' end,
       (select 'lock ' || k.namespace || '/' || k.name from fenceline.lock_wait k
        where k.job_id = r.job_id and k.attempt_id = r.attempt_id order by k.seq limit 1), r.lane,
       r.priority, j.tenant, j.args::jsonb, j.labels, r.number, j.max_attempts, fenceline.id_time(r.job_id), j.created_by, j.run_at,
       r.claimed_at, r.started_at, null, w.name, p.phase, p.progress, null, null, null, r.cancel_requested_at,
       fenceline.public_id(j.retry_of), fenceline.public_id(j.parent), coalesce(j.delivery, 'postgres'), fenceline.message_id(j.id, j.delivery, j.backend_job_id),
       r.job_id, j.runner, j.snapshot_hash, j.requires_hash, j.identity, fenceline.public_ids(j.after), j.key, j.key_limit,
       j.resource_lock, j.dedupe_key, j.expires_at, j.timeout_seconds, j.group_name, j.retry, j.snapshot
from fenceline.running r
left join fenceline.job j on j.id = r.job_id
left join fenceline.worker w on w.id = r.worker_id
left join fenceline.progress p on p.job_id = r.job_id and p.attempt_id = r.attempt_id
union all
select fenceline.public_id(t.job_id), t.kind, 'scheduled', null, t.lane, t.priority, t.tenant, j.args::jsonb, j.labels,
       coalesce(t.number, 0::smallint), j.max_attempts, fenceline.id_time(t.job_id), j.created_by, t.run_at, null, null, null, null,
       null, null, null, null, null, null, fenceline.public_id(j.retry_of), fenceline.public_id(j.parent),
       coalesce(j.delivery, 'postgres'), fenceline.message_id(j.id, j.delivery, j.backend_job_id), t.job_id, j.runner, j.snapshot_hash, j.requires_hash, j.identity, fenceline.public_ids(j.after), j.key, j.key_limit,
       j.resource_lock, j.dedupe_key, j.expires_at, j.timeout_seconds, j.group_name, j.retry, j.snapshot
from fenceline.timer t left join fenceline.job j on j.id = t.job_id
union all
select fenceline.public_id(h.job_id), h.kind, case h.waiting_for when 'approval' then 'awaiting_approval' else 'waiting' end,
       nullif(h.waiting_for, 'approval'), h.lane, h.priority, h.tenant, j.args::jsonb, j.labels, coalesce(h.number, 0::smallint),
       j.max_attempts, fenceline.id_time(h.job_id), j.created_by, coalesce(h.run_at, j.run_at), null, null, null, null, null, null,
       null, null, null, null, fenceline.public_id(j.retry_of), fenceline.public_id(j.parent), coalesce(j.delivery, 'postgres'),
       fenceline.message_id(j.id, j.delivery, j.backend_job_id), h.job_id, j.runner, j.snapshot_hash, j.requires_hash, j.identity, fenceline.public_ids(j.after), j.key, j.key_limit,
       j.resource_lock, j.dedupe_key, j.expires_at, j.timeout_seconds, j.group_name, j.retry, j.snapshot
from fenceline.held h left join fenceline.job j on j.id = h.job_id
union all
select fenceline.public_id(h.job_id), j.kind, h.outcome, null, j.lane, j.priority, j.tenant, j.args::jsonb, j.labels,
       coalesce(h.number, 0::smallint), j.max_attempts, fenceline.id_time(h.job_id), j.created_by, j.run_at, h.claimed_at,
       coalesce(h.started_at, h.claimed_at), h.ended_at, w.name, p.phase, p.progress, h.result, h.error, h.errors, null,
       fenceline.public_id(j.retry_of), fenceline.public_id(j.parent), coalesce(j.delivery, 'postgres'), fenceline.message_id(j.id, j.delivery, j.backend_job_id),
       h.job_id, j.runner, j.snapshot_hash, j.requires_hash, j.identity, fenceline.public_ids(j.after), j.key, j.key_limit,
       j.resource_lock, j.dedupe_key, j.expires_at, j.timeout_seconds, j.group_name, j.retry, j.snapshot
from fenceline.history h
left join fenceline.job j on j.id = h.job_id
left join fenceline.worker w on w.id = h.worker_id
left join fenceline.progress p on p.job_id = h.job_id
where h.final;

-- compatible_from: 1
--
-- Immutable facts, two tiny hot tables, append-only history.
--
-- Where a job's row is, says what the job is: `ready` is queued, `running` is claimed or running, `timer` is
-- scheduled, `held` is waiting or awaiting approval, a final row in `history` is the end. No foreign keys, row
-- triggers or counters: the functions are the only writers and keep the tables together.
--
-- Columns that a plain job does not use are nullable and stand last: a null costs one bit, and every byte of these
-- rows is written to the WAL for every job.

-- Ids -----------------------------------------------------------------------------------------------------------

-- The low 22 bits of every id; the high bits are milliseconds since 2024 (function next_id).
create sequence fenceline.job_id;

-- What exists ---------------------------------------------------------------------------------------------------

create table fenceline.setting (
  one boolean primary key default true check (one),
  draining boolean not null default false,
  max_args_bytes integer not null default 1048576,
  max_result_bytes integer not null default 1048576,
  max_log_bytes integer not null default 8192,
  idempotency_seconds integer not null default 86400,
  retention_seconds integer not null default 604800,
  cancel_grace_seconds integer not null default 30
);
insert into fenceline.setting default values;

create table fenceline.lane (
  name text primary key,
  slots integer check (slots >= 0),
  poll_interval_ms integer not null default 5000 check (poll_interval_ms between 10 and 3600000),
  stale_timeout_seconds integer check (stale_timeout_seconds > 0),
  on_stale text not null default 'retry' check (on_stale in ('retry', 'fail')),
  enabled boolean not null default true,
  rate_per_second double precision check (rate_per_second > 0),
  burst integer check (burst > 0),
  fair boolean not null default false,
  ageing_seconds integer check (ageing_seconds > 0),
  default_priority smallint not null default 0
);
insert into fenceline.lane (name, slots, poll_interval_ms, stale_timeout_seconds, default_priority) values
  ('default', null, 5000, null, 0),
  ('interactive', 2, 2000, 1800, 10),
  ('maintenance', 1, 15000, 1800, 0),
  ('system', 1, 30000, 1800, 0);

-- What the claim of a lane remembers between claims; apart from `lane`, so that operators and claims do not meet.
create table fenceline.lane_state (
  lane text primary key,
  scanned_at timestamptz,        -- last claim that looked below the workers' lower bounds
  tokens double precision,       -- rate limit: what the bucket held at refilled_at
  refilled_at timestamptz,
  served_tenant text             -- fairness: the tenant that was served last
) with (fillfactor = 50);

create table fenceline.kind (
  name text primary key,
  lane text,                     -- the lane that lists the kind; an operator's word
  default_lane text,             -- the decorator's word
  priority smallint,
  max_attempts smallint,
  retry jsonb,
  timeout_seconds double precision,
  retention jsonb                -- {"succeeded": seconds, …}; missing: setting.retention_seconds
);
create index kind_lane on fenceline.kind (lane) where lane is not null;

create table fenceline.worker (
  id integer primary key generated always as identity,
  name text not null,
  host text,
  pid integer,
  version text,
  supervisor_id integer,
  runner boolean not null default false,
  lanes text[],
  kinds text[],
  labels jsonb,
  lease_seconds double precision not null check (lease_seconds > 0),
  lease_until timestamptz not null,
  heartbeat_at timestamptz not null,
  started_at timestamptz not null,
  stopped_at timestamptz
) with (fillfactor = 50);
create index worker_live on fenceline.worker (lease_until) where stopped_at is null;

create table fenceline.job (
  id bigint not null,
  priority smallint not null,
  max_attempts smallint not null,
  kind text not null,
  lane text not null,
  tenant text not null,
  args json not null,            -- json: as it was sent; smaller than jsonb, and a claim need not turn it into text
  labels jsonb,
  created_by text,
  run_at timestamptz,
  expires_at timestamptz,
  timeout_seconds double precision,
  dedupe_key text,
  idempotency_key text,
  resource_lock text,
  key text,
  key_limit smallint,
  needs_approval boolean,
  snapshot jsonb,
  snapshot_hash text,
  requires_hash text,
  identity text,
  after bigint[],
  after_policy text,
  group_name text,
  retry jsonb,
  retry_of bigint,
  parent bigint,
  delivery text,
  traceparent text,              -- W3C trace context of the enqueue
  backend_job_id text,
  primary key (id)
) partition by range (id);
-- Lists by kind, lane and tenant. A bloom range index costs next to no WAL, because a range's summary changes only
-- when a value is new in it; three b-trees would cost a fifth of the whole WAL of a job (docs/adr/0003).
create index job_lists on fenceline.job using brin
  (kind text_bloom_ops, lane text_bloom_ops, tenant text_bloom_ops) with (pages_per_range = 32, autosummarize = on);
create index job_labels on fenceline.job using gin (labels jsonb_path_ops) where labels is not null;
create index job_group on fenceline.job (tenant, group_name) where group_name is not null;
create index job_retry_of on fenceline.job (retry_of) where retry_of is not null;
create table fenceline.job_default partition of fenceline.job default;

-- Where a job is ------------------------------------------------------------------------------------------------

-- What travels with a job from one of the four tables to the next.
-- uses: what else there is to look after, a sum of 1 dedupe key, 2 resource lock, 4 must get its key first,
-- 8 holds its key, 16 expires, 32 compares a snapshot's hash.
create type fenceline.live as (
  job_id bigint,
  seq bigint,                    -- order among equal priorities; an id, so also the time of becoming claimable
  priority smallint,
  lane text,
  kind text,
  tenant text,
  number smallint,               -- attempts used so far; null is 0
  token bigint,                  -- last token given; null is none
  deaths smallint,               -- null: no suspect; else runs alone, and so many processes died with it alone
  uses smallint,
  run_at timestamptz
);

-- Queued. The claim deletes from here. In a lane with ageing the rank is in seq alone: priority is 0 and
-- own_priority keeps the real one (function place_jobs).
create table fenceline.ready (
  job_id bigint not null,
  seq bigint not null,
  priority smallint not null,
  lane text not null,
  kind text not null,
  tenant text not null,
  own_priority smallint,
  number smallint,
  token bigint,
  deaths smallint,
  uses smallint,
  fair boolean
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0,
        autovacuum_vacuum_insert_threshold = -1);
create unique index ready_job on fenceline.ready (job_id);
create index ready_order on fenceline.ready (lane, priority desc, seq);
create index ready_fair on fenceline.ready (lane, tenant, priority desc, seq) where fair;
create index ready_alone on fenceline.ready (lane, priority desc, seq) where deaths is not null;

-- Claimed or running: one row per live attempt. `attempt_id` is the fence.
create table fenceline.running (
  job_id bigint not null,
  token bigint not null,
  claimed_at timestamptz not null,
  worker_id integer not null,
  attempt_id uuid not null,
  number smallint not null,
  priority smallint not null,
  lane text not null,
  seq bigint,                    -- null: the job's id
  started_at timestamptz,
  active_at timestamptz,         -- last log line or progress
  request_id uuid,
  uses smallint,
  deaths smallint,
  counted boolean,               -- the lane has slots or a stale rule: this row is in the index they use
  cancel_requested_at timestamptz,
  cancel_deadline timestamptz,
  cancel_actor text,
  cancel_reason text
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0,
        autovacuum_vacuum_insert_threshold = -1);
create unique index running_job on fenceline.running (job_id);
create index running_counted on fenceline.running (lane) where counted;
create index running_cancel on fenceline.running (worker_id, cancel_deadline) where cancel_deadline is not null;

-- Scheduled, or backing off.
create table fenceline.timer (
  job_id bigint primary key,
  seq bigint not null,
  priority smallint not null,
  lane text not null,
  kind text not null,
  tenant text not null,
  number smallint,
  token bigint,
  deaths smallint,
  uses smallint,
  run_at timestamptz not null
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);
create index timer_due on fenceline.timer (run_at, job_id);

-- Waiting for approval, for other jobs, or for its key.
create table fenceline.held (
  job_id bigint primary key,
  seq bigint not null,
  priority smallint not null,
  lane text not null,
  kind text not null,
  tenant text not null,
  waiting_for text not null check (waiting_for in ('approval', 'dependencies', 'key')),
  pending integer not null default 0 check (pending >= 0),
  number smallint,
  token bigint,
  deaths smallint,
  uses smallint,
  run_at timestamptz,
  key text
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);
create index held_key on fenceline.held (tenant, key, priority desc, seq) where waiting_for = 'key';
create index held_lists on fenceline.held (waiting_for, job_id);

-- What happened -------------------------------------------------------------------------------------------------

-- One row per ended attempt, and a row without attempt for a job that ended unclaimed.
create table fenceline.history (
  job_id bigint not null,
  ended_at timestamptz not null,
  token bigint,
  claimed_at timestamptz,
  started_at timestamptz,        -- null: with the claim
  worker_id integer,
  attempt_id uuid,
  number smallint,
  final boolean not null,
  outcome text not null check (outcome in ('succeeded', 'succeeded_with_errors', 'failed', 'cancelled', 'snoozed',
                                           'released', 'lost', 'crashed')),
  asked text,                    -- what the worker asked for, where that is not the outcome
  result jsonb,
  error jsonb,
  errors jsonb,
  metadata jsonb,
  actor text
) partition by range (job_id);
-- At most one terminal write per job, held by the storage itself. Every row is in one of these two, never in both.
create unique index history_final on fenceline.history (job_id) where final;
create index history_attempt on fenceline.history (job_id, token) where not final;
create index history_outcome on fenceline.history (outcome, job_id) where final and outcome <> 'succeeded';
create index history_ended on fenceline.history using brin (ended_at) with (pages_per_range = 32, autosummarize = on);
create index history_lists on fenceline.history using brin (outcome text_bloom_ops)
  with (pages_per_range = 32, autosummarize = on);
create table fenceline.history_default partition of fenceline.history default;

create table fenceline.event (
  id bigint primary key,
  at timestamptz not null,
  actor text,
  action text not null,
  subject text,                  -- public job id, or lane, kind, worker name
  tenant text,
  reason text,
  before jsonb,
  after jsonb
);
create index event_subject on fenceline.event (subject, id);

create table fenceline.log (
  job_id bigint not null,
  token bigint not null,
  line integer not null,
  at timestamptz not null,
  level text not null,
  message text not null,
  fields jsonb,
  primary key (job_id, token, line)
);

create table fenceline.progress (
  job_id bigint primary key,
  attempt_id uuid not null,
  phase text,
  progress jsonb,
  updated_at timestamptz not null
) with (fillfactor = 70);

-- Touched only by the jobs that use them -------------------------------------------------------------------------

create table fenceline.dedupe (
  tenant text not null,
  key text not null,
  job_id bigint not null,
  primary key (tenant, key)
);

create table fenceline.idempotency (
  tenant text not null,
  key text not null,
  job_id bigint not null,
  expires_at timestamptz not null,
  primary key (tenant, key)
);
create index idempotency_expiry on fenceline.idempotency (expires_at);

create table fenceline.resource_lock (
  tenant text not null,
  name text not null,
  job_id bigint not null,
  primary key (tenant, name)
);
create index resource_lock_job on fenceline.resource_lock (job_id);

create table fenceline.key_holder (
  tenant text not null,
  key text not null,
  job_id bigint not null,
  primary key (tenant, key, job_id)
);
create index key_holder_job on fenceline.key_holder (job_id);

-- "Look at this key again": written by enqueue and by the end of a holder, consumed by admit_keys in a short
-- transaction of a worker's, so that an open user transaction holds up nobody.
create table fenceline.key_check (
  id bigint primary key,
  tenant text not null,
  key text not null
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);

create table fenceline.dependency (
  after_id bigint not null,
  waiter_id bigint not null,
  primary key (after_id, waiter_id)
);
create index dependency_waiter on fenceline.dependency (waiter_id);

-- A new waiter whose dependencies may have ended while its enqueue was not yet visible (verify_dependencies).
create table fenceline.dependency_check (
  waiter_id bigint primary key,
  seen_xid xid8
);

create table fenceline.deadline (
  job_id bigint primary key,
  expires_at timestamptz not null
);
create index deadline_due on fenceline.deadline (expires_at);

-- A claim that has been answered: the same request again gets the same attempts.
create table fenceline.claim_request (
  request_id uuid primary key,
  worker_id integer not null,
  at timestamptz not null
);
create index claim_request_at on fenceline.claim_request (at);

-- Who wants to be notified. Unlogged: after a crash the waiters poll, and say so again.
create unlogged table fenceline.waiter (
  lane text not null,
  worker_id integer not null,
  until timestamptz not null,
  primary key (lane, worker_id)
);
create unlogged table fenceline.watch (
  job_id bigint primary key,
  until timestamptz not null
);

-- When each kind of maintenance last ran, so that a fleet does it once.
create table fenceline.maintenance (
  task text primary key,
  ran_at timestamptz not null
) with (fillfactor = 50);

-- compatible_from: 1
--
-- What handlers keep while they run: steps, checkpoints, children to come, locks and guards.
-- None of it is touched by a job that does not use it.

alter table fenceline.running add column log_bytes integer;  -- of this attempt so far
alter table fenceline.setting add column max_attempt_log_bytes integer not null default 16777216;

-- One row per step of a job, whichever attempt made it. `listed`: named up front, not yet run.
create table fenceline.step (
  job_id bigint not null,
  name text not null,
  position integer not null,
  status text not null check (status in ('listed', 'failed', 'done')),
  args_hash text,
  result jsonb,
  error jsonb,
  token bigint,                  -- of the attempt that wrote it last
  ran_seconds double precision,
  ended_at timestamptz,
  primary key (job_id, name)
);

create table fenceline.checkpoint (
  job_id bigint primary key,
  state jsonb not null,
  token bigint not null,
  updated_at timestamptz not null
) with (fillfactor = 70);

-- Jobs that a live attempt wants to make: they come to be with its successful end, or not at all. One row per call.
create table fenceline.child (
  job_id bigint not null,
  attempt_id uuid not null,
  position integer not null,
  request_id uuid not null,      -- of the call: sent again, it is answered like the first
  kind text not null,
  ids bigint[] not null,
  args json[] not null,
  options json not null,
  defaults json,
  primary key (job_id, attempt_id, position)
);

-- Held by one `ctx.lock` block of a live attempt. A row whose attempt is gone holds nothing (function take_lock).
create table fenceline.attempt_lock (
  tenant text not null,
  namespace text not null,
  name text not null,
  owner uuid not null,           -- the block
  job_id bigint not null,
  attempt_id uuid not null,
  since timestamptz not null,
  primary key (tenant, namespace, name)
);
create index attempt_lock_job on fenceline.attempt_lock (job_id);

-- Blocks that wait for a lock, in the order of `seq`. `holding`: the locks of the blocks around it, by owner; only those
-- cannot end before this one does.
create table fenceline.lock_wait (
  owner uuid primary key,
  seq bigint not null,
  tenant text not null,
  namespace text not null,
  name text not null,
  job_id bigint not null,
  attempt_id uuid not null,
  holding uuid[] not null,
  since timestamptz not null
);
create index lock_wait_lock on fenceline.lock_wait (tenant, namespace, name, seq);
create index lock_wait_job on fenceline.lock_wait (job_id);

-- The newest version of a resource that a job has announced (function guard_newer).
create table fenceline.guard (
  tenant text not null,
  resource text not null,
  version numeric not null,
  job_id bigint not null,
  at timestamptz not null,
  primary key (tenant, resource)
);

-- compatible_from: 1
--
-- Jobs that have begun and wait outside their slot, for a signal or for a time. Other jobs touch none of this.

-- What a job waits for, until its handler has come past that: one wait at a time.
create table fenceline.wait (
  job_id bigint primary key,
  step text not null,            -- the name under which the wait's end is kept
  signal text,                   -- null: it sleeps
  since timestamptz not null,
  until timestamptz,             -- null: for ever
  due_at timestamptz             -- `until`, while the job is held for a signal
);
create index wait_due on fenceline.wait (due_at) where due_at is not null;

-- Signals of a job, in the order in which they came. One that was taken has its payload in the step of the wait.
create table fenceline.signal (
  job_id bigint not null,
  id bigint not null,
  name text not null,
  payload jsonb,
  sent_at timestamptz not null,
  sent_by text,
  request_id uuid,               -- of the call: sent again, it is answered like the first
  taken_at timestamptz,
  taken_by text,                 -- the step
  primary key (job_id, id)
);
create unique index signal_request on fenceline.signal (job_id, request_id) where request_id is not null;

-- Jobs to be looked at again: a signal and a wait that are written at the same time do not see each other, but whoever
-- looks after both have committed does (function resume_waits).
create table fenceline.signal_check (
  id bigint primary key,
  job_id bigint not null
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);

-- What an outside system may send one signal with: the hash of a secret that stands in a URL.
create table fenceline.callback (
  hash bytea primary key check (octet_length(hash) = 32),
  job_id bigint not null,
  signal text not null,
  created_at timestamptz not null,
  expires_at timestamptz not null
);
create index callback_job on fenceline.callback (job_id);

alter table fenceline.held drop constraint held_waiting_for_check;
alter table fenceline.held add constraint held_waiting_for_check
  check (waiting_for in ('approval', 'dependencies', 'key', 'signal')) not valid;

-- compatible_from: 1
--
-- Watching jobs live, webhooks in and out. None of it is touched by a job that nobody watches and no hook asks for.

-- Jobs that a server shows to somebody live (job_id 0: everything that happens goes to the journal). Unlogged: after a
-- crash the servers poll, and say so again.
create unlogged table fenceline.follow (
  job_id bigint primary key,
  until timestamptz not null
) with (fillfactor = 50);

-- What happened while somebody follows everything, for a few minutes. Writers only append; a reader gives the rows their
-- order (function read_journal), because commits come in another order than inserts.
create sequence fenceline.journal_position;
create unlogged table fenceline.journal (
  position bigint,               -- null: not in order yet
  job_id bigint not null,
  at timestamptz not null,
  token bigint,                  -- log lines of an attempt; null: the job's state
  first_line integer,
  last_line integer
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);
create index journal_new on fenceline.journal (at) where position is null;
create unique index journal_order on fenceline.journal (position) where position is not null;

-- Incoming webhooks. A name belongs to its tenant: whose secret fits, is meant.
create table fenceline.trigger (
  tenant text not null,
  name text not null,
  kind text not null,
  secret text not null,          -- as it is: an HMAC can be checked only by who has the key
  args jsonb not null,           -- of every job
  map jsonb,                     -- {argument: jsonpath into the body}; null: the body itself is the args
  options jsonb not null,        -- of the enqueue
  idempotency_header text,       -- its value makes a delivery that is sent again the same job
  dedupe_header text,
  window_seconds integer not null check (window_seconds between 1 and 86400),
  enabled boolean not null,
  created_at timestamptz not null,
  created_by text,
  fired_at timestamptz,
  primary key (name, tenant)
) with (fillfactor = 70);
create index trigger_tenant on fenceline.trigger (tenant, name);

-- Signatures that were accepted, for as long as their timestamps would be.
create table fenceline.trigger_seen (
  tenant text not null,
  name text not null,
  signature bytea not null,
  until timestamptz not null,
  primary key (tenant, name, signature)
);
create index trigger_seen_until on fenceline.trigger_seen (until);

-- Outgoing webhooks.
create table fenceline.hook (
  id integer primary key generated always as identity,
  tenant text not null,
  url text not null,
  secret text not null,          -- as it is: whoever signs needs the key
  kinds text[],                  -- null: every kind
  statuses text[] not null,
  created_at timestamptz not null,
  created_by text
);
create index hook_tenant on fenceline.hook (tenant, id);

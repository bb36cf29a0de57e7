-- compatible_from: 1
--
-- Who may do what over HTTP: roles with their permissions, and the tokens that carry them.

-- own_jobs: job verbs reach only jobs that the token's actor enqueued (permission jobs:read_all lifts that).
-- all_tenants: the role crosses tenants; platform_admin alone does.
create table fenceline.role (
  name text primary key,
  permissions text[] not null,   -- '*': everything, also what later versions add
  own_jobs boolean not null default true,
  all_tenants boolean not null default false check (not all_tenants or name = 'platform_admin'),
  built_in boolean not null default false
);
insert into fenceline.role (name, permissions, own_jobs, all_tenants, built_in) values
  ('viewer', array['jobs:read', 'workers:view'], false, false, true),
  ('producer', array['jobs:read', 'jobs:enqueue', 'jobs:cancel'], true, false, true),
  ('operator', array['jobs:read', 'jobs:read_all', 'jobs:enqueue', 'jobs:cancel', 'jobs:approve', 'workers:view',
                     'workers:manage', 'schedules:manage', 'audit:read'], false, false, true),
  ('runner', array['runners:claim'], true, false, true),
  ('platform_admin', array['*'], false, true, true);

-- Only the SHA-256 of a token is kept. `name` is the actor: created_by of its jobs, actor in the audit. Two tokens of one
-- name in one tenant are one actor, so that a token can be replaced by another.
create table fenceline.token (
  id integer primary key generated always as identity,
  hash bytea not null unique check (octet_length(hash) = 32),
  name text not null,
  role text not null,
  tenant text not null,
  created_at timestamptz not null,
  created_by text,
  expires_at timestamptz,
  revoked_at timestamptz,
  last_used_at timestamptz       -- coarse: written at most once a minute
) with (fillfactor = 70);

-- The audit of one tenant.
create index event_tenant on fenceline.event (tenant, id);

-- "My jobs", newest first. Jobs that nobody is named for are not in it and pay nothing.
create index job_created_by on fenceline.job (tenant, created_by, id) where created_by is not null;

-- compatible_from: 1
--
-- Locks of code outside handlers (`app.lock`), each with a lease of its own.

-- A block that holds a lock or waits for one: in attempt_lock and lock_wait it is the attempt `owner` of the job `id`, of
-- which there is none. Whoever deletes this row deletes those too (function end_outside_locks).
create table fenceline.lock_lease (
  owner uuid primary key,        -- the block
  id bigint not null,
  actor text not null,           -- who
  token bigint,                  -- the fencing token, once it holds the lock
  lease_seconds double precision not null,
  renewed_at timestamptz not null,
  lease_until timestamptz not null
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

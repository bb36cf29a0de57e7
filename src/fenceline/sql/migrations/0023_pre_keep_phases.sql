-- compatible_from: 1
--
-- Phases stay readable after the next one has begun, with their progress and items.

alter table fenceline.progress add column started_at timestamptz;   -- of the phase; null: from before

-- Phases that another one, or another attempt, has followed; the last is in `progress`. Of jobs without phases there is nothing.
create table fenceline.phase (
  job_id bigint not null,
  position integer not null,
  attempt_id uuid not null,
  phase text,                    -- null: progress before the first phase
  progress jsonb,
  started_at timestamptz not null,
  primary key (job_id, position)
);

-- compatible_from: 1
--
-- Schedules: what enqueues jobs by the clock. Programs compute the ticks, because they have a cron library and the zones;
-- this table decides which of them has happened (function fire_schedule).

create table fenceline.schedule (
  name text primary key,
  kind text not null,
  args jsonb not null,
  options jsonb not null,          -- of the enqueue
  cron text,                       -- either this
  every integer,                   -- or seconds: ticks are whole multiples of them since 1970, UTC
  timezone text not null,
  misfire text not null check (misfire in ('skip', 'once', 'all')),
  misfire_limit integer not null,
  windows jsonb not null,          -- when it does not fire: [{"days": "mon-fri", "from": "22:00", "to": "04:00"}, …]
  paused boolean not null,
  -- All of the above is what the code says, with what operators have said on top.
  declared jsonb,                  -- null: not in any code
  overrides jsonb not null,
  revision bigint not null,        -- grows with every change of the above
  settled_at timestamptz not null, -- every tick up to here has been decided
  next_at timestamptz,             -- the first tick after it; null: to be computed, or there is none
  due_at timestamptz not null,     -- when a scheduler has something to do; infinity: never
  last_at timestamptz,             -- the last tick that fired
  last_job bigint,
  error text,                      -- why the last look at it failed
  created_at timestamptz not null,
  changed_at timestamptz not null,
  changed_by text,
  declared_at timestamptz,         -- when a program last said that it is in its code
  check ((cron is null) <> (every is null))
) with (fillfactor = 50);
create index schedule_due on fenceline.schedule (due_at);

-- What became of a tick; the primary key is why none fires twice. A schedule that is deleted leaves its ticks.
create table fenceline.schedule_tick (
  schedule text not null,
  tick_at timestamptz not null,
  outcome text not null check (outcome in ('fired', 'deduplicated', 'refused', 'window', 'missed')),
  decided_at timestamptz not null,
  from_at timestamptz,             -- missed: the row stands for all ticks since then
  job_id bigint,
  error text,
  primary key (schedule, tick_at)
);
create index schedule_tick_age on fenceline.schedule_tick using brin (decided_at);

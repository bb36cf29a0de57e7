-- compatible_from: 1
--
-- When a lane was last changed, and whether its jobs need approval.

alter table fenceline.lane
  add column updated_at timestamptz not null default now(),
  add column needs_approval boolean not null default false;

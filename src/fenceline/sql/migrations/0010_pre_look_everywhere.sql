-- compatible_from: 1
--
-- What makes sure that every late commit is looked for, and every waiter looked at.

-- Last claim that looked below the workers' lower bounds, per lane and set of kinds (lane_state.scanned_at was per lane, and
-- is no longer read).
create table fenceline.lane_scan (
  lane text not null,
  kinds bigint not null,         -- a hash; 0: all
  scanned_at timestamptz not null,
  primary key (lane, kinds)
) with (fillfactor = 50);

-- The waiter that was looked at last in the round of those that must be looked at again (verify_dependencies).
alter table fenceline.maintenance add column looked_at_waiter bigint;
create index dependency_check_new on fenceline.dependency_check (waiter_id) where seen_xid is null;

-- The lanes for autoscalers that read SQL. `depth`: how many jobs a worker could start now, 0 for a lane that is drained;
-- `running`: how many workers hold. A fleet that must not be shrunk under running jobs scales by depth + running.
-- `select depth from fenceline.lane_depth where lane = 'default'` counts in that lane only.
-- roles: reader
create or replace view fenceline.lane_depth as
select n.name as lane, fenceline.depth(n.name) as depth,
       (select count(*) from fenceline.running r where r.lane = n.name) as running, n.slots, n.enabled
from fenceline.lane n;

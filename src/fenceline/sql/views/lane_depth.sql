-- Depth by lane, for autoscalers that read SQL: how many jobs a worker could start now; 0 for a lane that is drained.
-- `select depth from fenceline.lane_depth where lane = 'default'` counts in that lane only.
-- roles: reader
create or replace view fenceline.lane_depth as
select n.name as lane, fenceline.depth(n.name) as depth, n.slots, n.enabled
from fenceline.lane n;

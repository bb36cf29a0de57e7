-- compatible_from: 1
--
-- A secret that was replaced stays valid for a while, so that the other side can follow. Deliveries of webhooks go to tenants in turn.

alter table fenceline.trigger add column previous_secret text;
alter table fenceline.trigger add column previous_until timestamptz;
alter table fenceline.hook add column previous_secret text;
alter table fenceline.hook add column previous_until timestamptz;

-- What waits there is marked by `place_jobs` and comes last until it is gone: a few deliveries of the moment.
update fenceline.lane set fair = true where name = 'webhooks';

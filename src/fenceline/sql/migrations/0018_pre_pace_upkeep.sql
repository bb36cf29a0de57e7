-- compatible_from: 1
--
-- How long to wait until a task of maintenance that could not get its locks is tried again; null: it got them.
alter table fenceline.maintenance add column pause_seconds double precision;

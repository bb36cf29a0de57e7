-- compatible_from: 1
--
-- How long a runner or worker may be silent before it is offline, per lane.

alter table fenceline.lane add column offline_timeout_seconds integer
  check (offline_timeout_seconds between 1 and 86400);  -- null: as whoever asks says, 60 by default

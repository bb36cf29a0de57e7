-- compatible_from: 1
--
-- Jobs that are meant for one worker or runner, by its name, or for some, by their labels.

alter table fenceline.ready add column runner jsonb;  -- {"name": …} or {"labels": {…}}, as claim_jobs compares it

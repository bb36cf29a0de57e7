-- compatible_from: 1
--
-- A dedupe key belongs to its jobs until they have ended; where they are says whether it is taken (function take_dedupe_key).

alter table fenceline.job
  add column dedupe_until text,  -- finished; null: claimed
  add column runner jsonb;       -- a name, or an object of labels, as it was said (see 0019); null: anybody's

-- Jobs that had the key before job_id took it and have not ended: one that goes back to wait has it again.
alter table fenceline.dedupe add column earlier bigint[];

-- Jobs that ended while somebody held a lock on their key (function give_back_dedupe_keys): maintain looks again.
create table fenceline.dedupe_check (
  job_id bigint primary key,
  tenant text not null,
  key text not null
);

-- Lanes where a claim passed over a job for the sake of an open transaction: maintain wakes their workers. Unlogged: after a
-- crash there is no such transaction, and workers poll.
create unlogged table fenceline.lane_check (
  lane text not null
);

-- compatible_from: 1
--
-- Lanes whose jobs reach workers by messages of a backend, Arq on Redis say.

alter table fenceline.lane add column delivery text;  -- null: nobody has said, which is as 'postgres'

-- Messages that were sent and have not been answered by a claim. Unlogged: after a crash they are all sent again, and a message
-- for a job that is claimed or gone is dropped. What is still to be sent is in `ready` (function take_messages).
create unlogged table fenceline.message (
  job_id bigint primary key,
  lane text not null,
  sent_at timestamptz not null
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);
create index message_age on fenceline.message (lane, sent_at);

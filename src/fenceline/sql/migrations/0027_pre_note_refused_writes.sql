-- compatible_from: 1
--
-- Late writes that the fence refused, for the timeline of the job.

-- A refused write itself changes nothing. Who was refused notes it in a transaction of its own: per attempt and sort of write
-- one row, however often it tries.
create table fenceline.refused_write (
  job_id bigint not null,
  attempt_id uuid not null,
  write text not null,           -- finish, log, save_checkpoint …: the name of the operation
  times integer not null,
  first_at timestamptz not null,
  last_at timestamptz not null,
  primary key (job_id, attempt_id, write)
);

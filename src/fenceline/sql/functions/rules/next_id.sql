-- A fresh time-ordered id; also the `seq` of a job that becomes claimable again.
-- roles: none
create or replace function fenceline.next_id() returns bigint
language sql volatile as $$
  select fenceline.id_at(clock_timestamp()) | (nextval('fenceline.job_id') & 4194303);
$$;

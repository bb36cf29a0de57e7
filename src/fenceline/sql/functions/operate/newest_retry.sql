-- The newest job that runs this one again, by whatever chain of retries; the job itself when nobody has retried it.
-- roles: none
create or replace function fenceline.newest_retry(p_job_id bigint) returns bigint
language sql stable as $$
  with recursive again as (
    select p_job_id as id
    union all
    select j.id from again a join fenceline.job j on j.retry_of = a.id
  )
  select max(id) from again;  -- ids are given out in the order of time
$$;

-- The lane that a job is queued in; null: it is not queued.
-- roles: worker
create or replace function fenceline.queued_lane(p_job_id bigint) returns text
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select r.lane from fenceline.ready r where r.job_id = p_job_id;
$$;

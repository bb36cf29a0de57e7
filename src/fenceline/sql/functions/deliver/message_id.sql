-- The name that a job's message has at the backend that delivers it: the backend's own, if it has told (name_messages), else the
-- job's public id. Null: the job is delivered by nobody.
-- roles: producer, worker, reader
create or replace function fenceline.message_id(p_job_id bigint, p_delivery text, p_backend_job_id text) returns text
language sql immutable parallel safe as $$
  select coalesce(p_backend_job_id, case when p_delivery <> 'postgres' then fenceline.public_id(p_job_id) end);
$$;

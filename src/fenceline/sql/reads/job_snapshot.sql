-- The configuration that a job was enqueued with, as JSON; null when it has none, or there is no such job (in p_tenant).
-- roles: producer, worker, reader
create or replace function fenceline.job_snapshot(p_job_id bigint, p_tenant text default null) returns jsonb
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select j.snapshot from fenceline.job j where j.id = p_job_id and (p_tenant is null or j.tenant = p_tenant);
$$;

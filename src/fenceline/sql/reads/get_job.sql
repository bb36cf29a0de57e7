-- One job as describe_job shows it, with what there was in version 0.1: its clients know of nothing else.
-- roles: producer, worker, reader
create or replace function fenceline.get_job(p_job_id bigint, p_tenant text default null) returns jsonb
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select fenceline.describe_job(p_job_id, p_tenant) - fenceline.later_job_fields();
$$;

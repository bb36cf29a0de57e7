-- One job as JSON, as the view `jobs` shows it; null when it is not there, or belongs to another tenant than p_tenant.
-- roles: producer, worker, reader
create or replace function fenceline.get_job(p_job_id bigint, p_tenant text default null) returns jsonb
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select to_jsonb(v) - 'job_id' from fenceline.jobs v
  where v.job_id = p_job_id and (p_tenant is null or v.tenant = p_tenant);
$$;

-- One job as JSON, as the view `jobs` shows it, but without the snapshot (job_snapshot); null when it is not there, or belongs to another tenant than p_tenant.
-- roles: producer, worker, reader
create or replace function fenceline.describe_job(p_job_id bigint, p_tenant text default null) returns jsonb
language plpgsql stable security definer set search_path = pg_catalog, pg_temp
-- The view has an arm per table, and tables have partitions: planning it costs several times what running it does. One
-- plan for all jobs, by the primary keys.
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off
as $$
begin
  return (
    select to_jsonb(v) - array['job_id', 'snapshot'] from fenceline.jobs v
    where v.job_id = p_job_id and (p_tenant is null or v.tenant = p_tenant));
end;
$$;

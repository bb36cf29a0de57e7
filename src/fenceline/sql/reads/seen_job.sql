-- The public id of a job, for somebody who is told why another job waits for it; null when they may not know of it: it is
-- another tenant's than p_tenant (null: any), or not enqueued by p_created_by (null: anybody).
-- roles: none
create or replace function fenceline.seen_job(p_job_id bigint, p_tenant text, p_created_by text) returns text
language sql stable as $$
  select fenceline.public_id(j.id) from fenceline.job j
  where j.id = p_job_id and (p_tenant is null or j.tenant = p_tenant)
    and (p_created_by is null or j.created_by = p_created_by);
$$;

-- Whether a job is somewhere on its way: queued, scheduled, waiting or held by a worker.
-- roles: none
create or replace function fenceline.is_live(p_job_id bigint) returns boolean
language sql stable as $$
  select exists (select 1 from fenceline.ready r where r.job_id = p_job_id)
      or exists (select 1 from fenceline.running r where r.job_id = p_job_id)
      or exists (select 1 from fenceline.timer t where t.job_id = p_job_id)
      or exists (select 1 from fenceline.held h where h.job_id = p_job_id);
$$;

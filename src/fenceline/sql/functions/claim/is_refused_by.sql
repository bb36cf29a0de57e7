-- Whether a worker's handler has refused the args of this job before, or one just like it (`claimer` knows the worker).
-- Asked for marked jobs only (uses, bit 512), so that others cost a claim nothing.
-- roles: none
create or replace function fenceline.is_refused_by(p_job_id bigint, p_claimer jsonb) returns boolean
language sql stable as $$
  select exists (
    select 1 from fenceline.refusal f join fenceline.worker w on w.id = (p_claimer ->> 'id')::integer
    where f.job_id = p_job_id and w.signatures ?| f.signatures);
$$;

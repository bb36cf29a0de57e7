-- Deletes those of a list that are finished jobs, and all that is kept of them; the others are left alone. One audit event
-- per tenant, with their number by kind: for jobs by the thousand, where one event each (delete_job) would be noise.
--
-- Returns how many were deleted.
-- roles: admin
create or replace function fenceline.delete_jobs(
  p_job_ids bigint[],
  p_actor text default null,
  p_reason text default null
) returns integer
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_finished bigint[];
begin
  v_finished := array(
    select distinct h.job_id from fenceline.history h where h.job_id = any(p_job_ids) and h.final);
  if cardinality(v_finished) > 0 then
    perform fenceline.record_event(p_actor, 'jobs.delete', 'jobs', t.tenant, p_reason, t.kinds, null)
    from (
      select k.tenant, jsonb_object_agg(k.kind, k.jobs) as kinds
      from (select j.tenant, j.kind, count(*) as jobs from fenceline.job j where j.id = any(v_finished)
            group by j.tenant, j.kind) k
      group by k.tenant
    ) t;
    perform fenceline.forget_jobs(v_finished);
  end if;
  return cardinality(v_finished);
end;
$$;

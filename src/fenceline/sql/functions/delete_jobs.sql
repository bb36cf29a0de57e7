-- Deletes those of a list that are finished jobs, and all that is kept of them; the others are left alone. One audit event
-- for all, with their number by kind: for jobs by the thousand, where one event each (delete_job) would be noise.
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
  v_kinds jsonb;
begin
  v_finished := array(
    select distinct h.job_id from fenceline.history h where h.job_id = any(p_job_ids) and h.final);
  if cardinality(v_finished) > 0 then
    select jsonb_object_agg(k.kind, k.jobs) into v_kinds
    from (select j.kind, count(*) as jobs from fenceline.job j where j.id = any(v_finished) group by j.kind) k;
    perform fenceline.record_event(p_actor, 'jobs.delete', 'jobs', null, p_reason, v_kinds, null);
    perform fenceline.forget_jobs(v_finished);
  end if;
  return cardinality(v_finished);
end;
$$;

-- The first half of end_waiting: removes the live rows and writes the final ones; returns the ids, or null for none.
-- roles: none
create or replace function fenceline.bury_waiting(p_job_ids bigint[], p_outcome text, p_error jsonb, p_actor text)
returns bigint[]
language plpgsql as $$
declare
  v_ended bigint[];
begin
  with r as (delete from fenceline.ready where job_id = any(p_job_ids) returning job_id, number),
       t as (delete from fenceline.timer where job_id = any(p_job_ids) returning job_id, number),
       h as (delete from fenceline.held where job_id = any(p_job_ids) returning job_id, number),
       gone as (select * from r union all select * from t union all select * from h),
       written as (
         insert into fenceline.history (job_id, ended_at, number, final, outcome, error, actor)
         select g.job_id, fenceline.clock(), g.number, true, p_outcome, p_error, p_actor from gone g
         returning job_id)
  select array_agg(job_id) into v_ended from written;
  if v_ended is not null then
    delete from fenceline.dedupe d using fenceline.job j
    where j.id = any(v_ended) and j.dedupe_key is not null
      and d.tenant = j.tenant and d.key = j.dedupe_key and d.job_id = j.id;
  end if;
  return v_ended;
end;
$$;

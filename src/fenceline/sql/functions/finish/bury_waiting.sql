-- The first half of end_waiting: removes the live rows and writes the final ones; returns the ids, or null for none.
-- roles: none
create or replace function fenceline.bury_waiting(p_job_ids bigint[], p_outcome text, p_error jsonb, p_actor text)
returns bigint[]
language plpgsql as $$
declare
  v_ended bigint[];
  v_tenants text[];
  v_keys text[];
begin
  with r as (delete from fenceline.ready where job_id = any(p_job_ids) returning job_id, number),
       t as (delete from fenceline.timer where job_id = any(p_job_ids) returning job_id, number),
       h as (delete from fenceline.held where job_id = any(p_job_ids) returning job_id, number, tenant, key),
       gone as (select * from r union all select * from t union all select job_id, number from h),
       written as (
         insert into fenceline.history (job_id, ended_at, number, final, outcome, error, actor)
         select g.job_id, fenceline.clock(), g.number, true, p_outcome, p_error, p_actor from gone g
         returning job_id)
  select array_agg(w.job_id), array_agg(h.tenant) filter (where h.key is not null),
         array_agg(h.key) filter (where h.key is not null)
    into v_ended, v_tenants, v_keys
  from written w left join h on h.job_id = w.job_id;
  if v_keys is not null then
    -- Whoever was first in the line of its key held up those behind it, who may have a higher limit.
    perform fenceline.ask_for_keys(v_tenants, v_keys);
  end if;
  return v_ended;
end;
$$;

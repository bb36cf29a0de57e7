-- Gives back the keys of ended jobs, and asks for a look at each: the next job is admitted by admit_keys.
-- roles: none
create or replace function fenceline.free_keys(p_job_ids bigint[]) returns void
language plpgsql as $$
declare
  v_tenants text[];
  v_keys text[];
begin
  with freed as (
    delete from fenceline.key_holder where job_id = any(p_job_ids) returning tenant, key
  )
  select array_agg(f.tenant), array_agg(f.key) into v_tenants, v_keys from freed f;
  if v_keys is not null then
    perform fenceline.ask_for_keys(v_tenants, v_keys);
  end if;
end;
$$;

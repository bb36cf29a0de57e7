-- Gives back the dedupe keys of ended jobs (give_back_dedupe_keys).
-- roles: none
create or replace function fenceline.free_dedupe_keys(p_job_ids bigint[]) returns void
language plpgsql as $$
declare
  v_with_key record;
begin
  select array_agg(j.id) as ids, array_agg(j.tenant) as tenants, array_agg(j.dedupe_key) as keys into v_with_key
  from fenceline.job j where j.id = any(p_job_ids) and j.dedupe_key is not null;
  if v_with_key.ids is not null then
    perform fenceline.give_back_dedupe_keys(v_with_key.ids, v_with_key.tenants, v_with_key.keys);
  end if;
end;
$$;

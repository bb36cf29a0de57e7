-- The resolver of dedupe keys: those that were locked when their job ended are given back, and workers of lanes where a job
-- was passed over for the sake of an open transaction are woken. Returns how many jobs and lanes there were.
-- roles: none
create or replace function fenceline.verify_dedupe_keys(p_limit integer default 1000) returns integer
language plpgsql as $$
declare
  v_ended record;
  v_lanes text[];
begin
  with asked as (
    delete from fenceline.dedupe_check where job_id = any(array(
      select c.job_id from fenceline.dedupe_check c limit p_limit for update skip locked))
    returning job_id, tenant, key
  )
  select array_agg(a.job_id) as ids, array_agg(a.tenant) as tenants, array_agg(a.key) as keys into v_ended from asked a;
  if v_ended.ids is not null then
    perform fenceline.give_back_dedupe_keys(v_ended.ids, v_ended.tenants, v_ended.keys);
  end if;
  with passed as (
    delete from fenceline.lane_check where ctid = any(array(
      select c.ctid from fenceline.lane_check c limit p_limit for update skip locked))
    returning lane
  )
  select array_agg(distinct p.lane) into v_lanes from passed p;
  if v_lanes is not null then
    perform fenceline.wake(v_lanes);
  end if;
  return coalesce(cardinality(v_ended.ids), 0) + coalesce(cardinality(v_lanes), 0);
end;
$$;

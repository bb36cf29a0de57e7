-- Gives back the keys of ended jobs, and asks for a look at each: the next job is admitted by admit_keys.
-- roles: none
create or replace function fenceline.free_keys(p_job_ids bigint[]) returns void
language plpgsql as $$
declare
  v_lanes text[];
begin
  with freed as (
    delete from fenceline.key_holder where job_id = any(p_job_ids) returning tenant, key
  ), asked as (
    insert into fenceline.key_check (id, tenant, key)
    select fenceline.next_id(), d.tenant, d.key from (select distinct f.tenant, f.key from freed f) d
  )
  select array_agg(distinct h.lane) into v_lanes
  from (select distinct f.tenant, f.key from freed f) d
  cross join lateral (
    select lane from fenceline.held h
    where h.waiting_for = 'key' and h.tenant = d.tenant and h.key = d.key
    order by h.priority desc, h.seq limit 1) h;
  if v_lanes is not null then
    perform fenceline.wake(v_lanes);
  end if;
end;
$$;

-- Asks for a look at keys whose line may go on (admit_keys), because a holder has ended or who is first in line has changed;
-- tells the workers who can do it.
-- p_tenants, p_keys   one pair per key; a pair may be named more than once
-- roles: none
create or replace function fenceline.ask_for_keys(p_tenants text[], p_keys text[]) returns void
language plpgsql as $$
declare
  v_lanes text[];
begin
  with asked as (
    select distinct a.tenant, a.key from unnest(p_tenants, p_keys) a(tenant, key)
  ), noted as (
    insert into fenceline.key_check (id, tenant, key) select fenceline.next_id(), a.tenant, a.key from asked a
  )
  select array_agg(distinct h.lane) into v_lanes
  from asked a
  cross join lateral (
    select h.lane from fenceline.held h
    where h.waiting_for = 'key' and h.tenant = a.tenant and h.key = a.key
    order by h.priority desc, h.seq limit 1) h;
  if v_lanes is not null then
    perform fenceline.wake(v_lanes);
  end if;
end;
$$;

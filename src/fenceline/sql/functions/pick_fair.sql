-- Like pick_ready, for a lane that shares its claims fairly between tenants: round robin over the tenants that have
-- claimable jobs, beginning behind the one that was served last; within a tenant by priority and seq.
--
-- Tenants are found by hopping from one to the next in ready_fair, so a tenant with a million jobs costs as much as one
-- with a single job; only jobs that this worker may not claim (another kind, a suspect) are walked over. Caller holds the lane's lock; the turn is kept in lane_state.
-- roles: none
create or replace function fenceline.pick_fair(
  p_lane text,
  p_kinds text[],
  p_limit integer,
  p_alone boolean,
  out rows tid[],
  out uses integer
)
language plpgsql as $$
declare
  v_served text := coalesce((select s.served_tenant from fenceline.lane_state s where s.lane = p_lane), '');
  v_last text;
begin
  with recursive behind as (  -- tenants after the one served last, then from the start
    (select r.tenant, 1 as n from fenceline.ready r
     where r.fair and r.lane = p_lane and r.tenant > v_served
       and (p_kinds is null or r.kind = any(p_kinds)) and (r.deaths is null) <> p_alone
     order by r.lane, r.tenant limit 1)
    union all
    select (select r.tenant from fenceline.ready r
            where r.fair and r.lane = p_lane and r.tenant > b.tenant
              and (p_kinds is null or r.kind = any(p_kinds)) and (r.deaths is null) <> p_alone
            order by r.lane, r.tenant limit 1), b.n + 1
    from behind b where b.tenant is not null and b.n < p_limit
  ), before as (
    (select r.tenant, 1 as n from fenceline.ready r
     where r.fair and r.lane = p_lane and r.tenant <= v_served
       and (p_kinds is null or r.kind = any(p_kinds)) and (r.deaths is null) <> p_alone
     order by r.lane, r.tenant limit 1)
    union all
    select (select r.tenant from fenceline.ready r
            where r.fair and r.lane = p_lane and r.tenant > b.tenant and r.tenant <= v_served
              and (p_kinds is null or r.kind = any(p_kinds)) and (r.deaths is null) <> p_alone
            order by r.lane, r.tenant limit 1), b.n + 1
    from before b where b.tenant is not null and b.n < p_limit
  ), turn as materialized (
    select t.tenant, row_number() over (order by t.part, t.n) as place
    from (select tenant, n, 1 as part from behind union all select tenant, n, 2 from before) t
    where t.tenant is not null
    order by t.part, t.n limit p_limit
  ), candidate as materialized (
    select c.ctid, c.uses, t.tenant, t.place, c.nth
    from turn t
    cross join lateral (
      select r.ctid, r.uses, row_number() over () as nth
      from (select q.ctid, q.uses from fenceline.ready q
            where q.fair and q.lane = p_lane and q.tenant = t.tenant
              and (p_kinds is null or q.kind = any(p_kinds)) and (q.deaths is null) <> p_alone
            order by q.priority desc, q.seq
            -- A tenant alone may fill the batch; among k tenants each may need up to limit rows only if the others
            -- have few, so this is the most that can be taken from one.
            limit p_limit) r
    ) c
    order by c.nth, t.place limit p_limit
  ), locked as materialized (
    select r.ctid, r.uses, r.tenant, c.nth, c.place
    from candidate c join fenceline.ready r on r.ctid = c.ctid
    for update of r skip locked
  )
  select coalesce(array_agg(l.ctid order by l.nth, l.place), '{}'), coalesce(bit_or(l.uses), 0),
         (array_agg(l.tenant order by l.nth desc, l.place desc))[1]
    into rows, uses, v_last
  from locked l;
  if v_last is not null then
    insert into fenceline.lane_state (lane, served_tenant) values (p_lane, v_last)
    on conflict (lane) do update set served_tenant = excluded.served_tenant;
  end if;
end;
$$;

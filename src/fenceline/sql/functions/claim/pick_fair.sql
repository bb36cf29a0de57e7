-- Like pick_ready, for a lane that shares its claims fairly between tenants: round robin over the tenants that have
-- claimable jobs, beginning behind the one that was served last; within a tenant by priority and seq.
--
-- Tenants are found by hopping from the first job of one to the first job of the next in ready_fair, so a tenant with a
-- million jobs costs as much as one with a single job; only jobs that this worker may not claim (another kind, a
-- suspect) are walked over. A claim serves at most 64 tenants, the next claim those behind them: a claim of hundreds would
-- spend most of its time on hopping. Caller holds the lane's lock; the turn is kept in lane_state.
-- Plans: as in pick_ready, in the order of an index.
-- roles: none
create or replace function fenceline.pick_fair(
  p_lane text,
  p_kinds text[],
  p_limit integer,
  p_alone boolean,
  p_claimer jsonb,
  out rows tid[],
  out uses integer
)
language plpgsql set enable_sort = off set enable_bitmapscan = off set jit = off as $$
declare
  v_served text := coalesce((select s.served_tenant from fenceline.lane_state s where s.lane = p_lane), '');
  v_most integer := least(p_limit, 64);
  v_turn text[];
  v_each integer;
  v_exhausted boolean;
  v_last text;
begin
  with recursive behind as (  -- tenants after the one served last, then from the start
    (select r.tenant, r.ctid as first, 1 as n from fenceline.ready r
     where r.fair and r.lane = p_lane and r.tenant > v_served
       and fenceline.runs_kind(p_kinds, r.kind) and coalesce(r.runner <@ p_claimer, true) and (r.deaths is null) <> p_alone
       and (r.uses & 512 /* refused */ is distinct from 512 or not fenceline.is_refused_by(r.job_id, p_claimer))
       and (r.uses & 1 /* dedupe */ is distinct from 1 or fenceline.lock_dedupe_key(r.job_id, p_lane))
     order by r.lane, r.tenant, r.priority desc, r.seq limit 1)
    union all
    select f.tenant, f.ctid, b.n + 1
    from behind b
    cross join lateral (
      select r.tenant, r.ctid from fenceline.ready r
      where r.fair and r.lane = p_lane and r.tenant > b.tenant
        and fenceline.runs_kind(p_kinds, r.kind) and coalesce(r.runner <@ p_claimer, true) and (r.deaths is null) <> p_alone
        and (r.uses & 512 /* refused */ is distinct from 512 or not fenceline.is_refused_by(r.job_id, p_claimer))
        and (r.uses & 1 /* dedupe */ is distinct from 1 or fenceline.lock_dedupe_key(r.job_id, p_lane))
      order by r.lane, r.tenant, r.priority desc, r.seq limit 1) f
    where b.n < v_most
  ), before as (
    (select r.tenant, r.ctid as first, 1 as n from fenceline.ready r
     where r.fair and r.lane = p_lane and r.tenant <= v_served
       and fenceline.runs_kind(p_kinds, r.kind) and coalesce(r.runner <@ p_claimer, true) and (r.deaths is null) <> p_alone
       and (r.uses & 512 /* refused */ is distinct from 512 or not fenceline.is_refused_by(r.job_id, p_claimer))
       and (r.uses & 1 /* dedupe */ is distinct from 1 or fenceline.lock_dedupe_key(r.job_id, p_lane))
     order by r.lane, r.tenant, r.priority desc, r.seq limit 1)
    union all
    select f.tenant, f.ctid, b.n + 1
    from before b
    cross join lateral (
      select r.tenant, r.ctid from fenceline.ready r
      where r.fair and r.lane = p_lane and r.tenant > b.tenant and r.tenant <= v_served
        and fenceline.runs_kind(p_kinds, r.kind) and coalesce(r.runner <@ p_claimer, true) and (r.deaths is null) <> p_alone
        and (r.uses & 512 /* refused */ is distinct from 512 or not fenceline.is_refused_by(r.job_id, p_claimer))
        and (r.uses & 1 /* dedupe */ is distinct from 1 or fenceline.lock_dedupe_key(r.job_id, p_lane))
      order by r.lane, r.tenant, r.priority desc, r.seq limit 1) f
    where b.n < v_most
  )
  select array_agg(t.tenant order by t.part, t.n), array_agg(t.first order by t.part, t.n)
    into v_turn, rows
  from (select b.*, 1 as part from behind b union all select b.*, 2 from before b
        order by part, n limit v_most) t;

  -- Fewer tenants than asked for: several jobs of each, in turns. Each tenant is read as far as it would have to give if
  -- all had enough; while some have less, the others are read further.
  v_each := 1;
  v_last := v_turn[cardinality(v_turn)];
  while cardinality(rows) < p_limit and v_each < p_limit loop
    v_each := least(p_limit, case v_each when 1 then (p_limit - 1) / cardinality(v_turn) + 1 else v_each * 4 end);
    select array_agg(c.ctid), count(*) filter (where c.nth = v_each) = 0,
           (array_agg(c.tenant order by c.nth desc, c.place desc))[1]
      into rows, v_exhausted, v_last
    from (
      select q.ctid, q.nth, t.place, t.tenant
      from unnest(v_turn) with ordinality t(tenant, place)
      cross join lateral (
        select r.ctid, row_number() over () as nth
        from (select r.ctid from fenceline.ready r
              where r.fair and r.lane = p_lane and r.tenant = t.tenant
                and fenceline.runs_kind(p_kinds, r.kind) and coalesce(r.runner <@ p_claimer, true) and (r.deaths is null) <> p_alone
                and (r.uses & 512 /* refused */ is distinct from 512 or not fenceline.is_refused_by(r.job_id, p_claimer))
                and (r.uses & 1 /* dedupe */ is distinct from 1 or fenceline.lock_dedupe_key(r.job_id, p_lane))
              order by r.priority desc, r.seq limit v_each) r) q
      order by q.nth, t.place limit p_limit) c;
    exit when v_exhausted;
  end loop;

  -- By a list of places: a join would visit them one by one, at ten times the cost.
  select coalesce(array_agg(l.ctid), '{}'), coalesce(bit_or(l.uses), 0) into rows, uses
  from (select r.ctid, r.uses from fenceline.ready r where r.ctid = any(rows) for update skip locked) l;
  if cardinality(rows) > 0 then
    insert into fenceline.lane_state (lane, served_tenant) values (p_lane, v_last)
    on conflict (lane) do update set served_tenant = excluded.served_tenant;
  end if;
end;
$$;

-- Makes p_kinds the list of a lane's kinds, and moves the unclaimed jobs of kinds that are new in it.
-- Caller holds the lane's lock. Queued jobs move through place_jobs, because their rank belongs to the lane.
-- roles: none
create or replace function fenceline.move_kinds(p_lane text, p_kinds jsonb) returns void
language plpgsql as $$
declare
  v_kinds text[];
  v_new text[];
  v_kind text;
  v_moved fenceline.live[];
begin
  if jsonb_typeof(p_kinds) <> 'array' then
    raise exception using errcode = 'FL018', message = format('kinds of lane %L must be a list of names', p_lane);
  end if;
  v_kinds := array(select distinct k from jsonb_array_elements_text(p_kinds) k order by k);
  foreach v_kind in array v_kinds loop
    perform fenceline.check_name('kind', v_kind);
  end loop;
  v_new := array(
    select k from unnest(v_kinds) k
    where not exists (select 1 from fenceline.kind n where n.name = k and n.lane = p_lane) order by k);
  update fenceline.kind n set lane = null where n.lane = p_lane and n.name <> all(v_kinds);
  insert into fenceline.kind (name, lane) select k, p_lane from unnest(v_new) k
  on conflict (name) do update set lane = excluded.lane;

  with gone as (
    delete from fenceline.ready r where r.kind = any(v_new) and r.lane <> p_lane returning r.*
  )
  select array_agg(row(g.job_id,
                       fenceline.aged_seq(g.seq, -coalesce(g.own_priority, 0), n.ageing_seconds),
                       coalesce(g.own_priority, g.priority), p_lane, g.kind, g.tenant, g.number, g.token, g.deaths,
                       g.uses, null)::fenceline.live)
    into v_moved
  from gone g left join fenceline.lane n on n.name = g.lane;  -- left: the lane may have been deleted (restore_lanes)
  if v_moved is not null then
    perform fenceline.place_jobs(v_moved);
  end if;
  update fenceline.timer t set lane = p_lane where t.kind = any(v_new) and t.lane <> p_lane;
  update fenceline.held h set lane = p_lane where h.kind = any(v_new) and h.lane <> p_lane;
end;
$$;

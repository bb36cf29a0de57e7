-- Makes lanes anew that have jobs and do not exist: an enqueue waits for nobody, so one that was open while its lane was
-- deleted leaves a job that no worker would ever look for. Jobs that wait elsewhere come through `ready`, too.
-- Plan: hops from the first job of one lane to the first of the next in ready_order, however many jobs there are and
-- whatever the statistics say.
-- roles: none
create or replace function fenceline.restore_lanes() returns void
language plpgsql set enable_seqscan = off set enable_sort = off set jit = off as $$
declare
  v_lane fenceline.lane;
begin
  for v_lane in
    with recursive used as (
      (select r.lane from fenceline.ready r order by r.lane limit 1)
      union all
      select f.lane from used u
      cross join lateral (select r.lane from fenceline.ready r where r.lane > u.lane order by r.lane limit 1) f
    )
    insert into fenceline.lane (name) select u.lane from used u
    where not exists (select 1 from fenceline.lane n where n.name = u.lane)
    on conflict do nothing
    returning *
  loop
    perform fenceline.record_event(null, 'lane.create', v_lane.name, null, 'jobs came in while it was deleted', null,
                                   fenceline.lane_json(v_lane));
  end loop;
end;
$$;

-- Deletes a lane that no unfinished job is in. Raises FL001, FL019 (in use, or `default`).
-- p_actor_tenant is not used any more: the event is in every tenant's audit.
-- A job that is just being enqueued is not seen: restore_lanes makes the lane anew for it.
-- Needs READ COMMITTED (FL016).
-- roles: admin
create or replace function fenceline.delete_lane(
  p_name text,
  p_actor text default null,
  p_actor_tenant text default null
) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_old fenceline.lane;
begin
  perform fenceline.require_read_committed('delete_lane');
  perform fenceline.take_verb_lock(1179926085, hashtext(p_name));
  select * into v_old from fenceline.lane l where l.name = p_name for update;
  if not found then
    raise exception using errcode = 'FL001', message = format('lane %L does not exist', p_name);
  end if;
  if p_name = 'default' then
    raise exception using errcode = 'FL019', message = 'lane ''default'' cannot be deleted: jobs without a lane go there';
  end if;
  if exists (select 1 from fenceline.ready r where r.lane = p_name)
     or exists (select 1 from fenceline.running r where r.lane = p_name)
     or exists (select 1 from fenceline.timer t where t.lane = p_name)
     or exists (select 1 from fenceline.held h where h.lane = p_name) then
    raise exception using errcode = 'FL019',
      message = format('lane %L has unfinished jobs: move its kinds to another lane or let them end first', p_name);
  end if;
  perform fenceline.record_event(p_actor, 'lane.delete', p_name, null, null, fenceline.lane_json(v_old), null);
  update fenceline.kind k set lane = null where k.lane = p_name;
  delete from fenceline.lane_state where lane = p_name;
  delete from fenceline.lane_scan where lane = p_name;
  delete from fenceline.lane where name = p_name;
end;
$$;

-- Changes a lane, or creates it; takes effect with the next claim. Returns the lane as it is afterwards.
--
-- p_changes   any of slots poll_interval_ms stale_timeout_seconds on_stale enabled rate_per_second burst fair
--             ageing_seconds default_priority needs_approval offline_timeout_seconds delivery kinds; null clears. "kinds" is the whole list: kinds that are new in it
--             move here with their unclaimed jobs, kinds that left it go by their decorators from now on.
-- p_create    true: it must be new; false: it must exist; null: either
-- p_actor_tenant   not used any more: lanes belong to all tenants, and so do the events about them
-- Raises FL001, FL002, FL018 (bad setting), FL046 (the lane is there already).
-- Waits for claims of this lane in flight (the lane's lock), so that a limit holds for every claim after the change.
-- Needs READ COMMITTED (FL016).
-- roles: admin
create or replace function fenceline.set_lane(
  p_name text,
  p_changes jsonb default '{}',
  p_actor text default null,
  p_create boolean default null,
  p_actor_tenant text default null
) returns jsonb
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_old fenceline.lane;
  v_new fenceline.lane;
  v_before jsonb;
  v_bad text;
begin
  perform fenceline.require_read_committed('set_lane');
  perform fenceline.check_name('lane', p_name);
  if jsonb_typeof(p_changes) is distinct from 'object' then
    raise exception using errcode = 'FL018', message = format('changes of lane %L must be a JSON object', p_name);
  end if;
  select string_agg(k, ', ') into v_bad from jsonb_object_keys(p_changes) k
  where k <> all (array['slots', 'poll_interval_ms', 'stale_timeout_seconds', 'on_stale', 'enabled', 'rate_per_second',
                        'burst', 'fair', 'ageing_seconds', 'default_priority', 'needs_approval', 'offline_timeout_seconds',
                        'delivery', 'kinds']);
  if v_bad is not null then
    raise exception using errcode = 'FL018', message = format('lane %L has no setting %s', p_name, v_bad);
  end if;
  perform fenceline.check_lane_settings(p_name, p_changes);
  perform fenceline.take_verb_lock(1179926085, hashtext(p_name));
  select * into v_old from fenceline.lane l where l.name = p_name for update;
  if found and p_create then
    raise exception using errcode = 'FL046', message = format('lane %L exists already', p_name);
  elsif not found then
    if p_create is false then
      raise exception using errcode = 'FL001', message = format('lane %L does not exist', p_name);
    end if;
    insert into fenceline.lane (name) values (p_name) returning * into v_old;
  else
    v_before := fenceline.lane_json(v_old);
  end if;

  begin
    v_new := jsonb_populate_record(v_old, p_changes - 'kinds');
    update fenceline.lane l
    set slots = v_new.slots, poll_interval_ms = v_new.poll_interval_ms,
        stale_timeout_seconds = v_new.stale_timeout_seconds, on_stale = v_new.on_stale, enabled = v_new.enabled,
        rate_per_second = v_new.rate_per_second, burst = v_new.burst, fair = v_new.fair,
        ageing_seconds = v_new.ageing_seconds, default_priority = v_new.default_priority,
        needs_approval = v_new.needs_approval, offline_timeout_seconds = v_new.offline_timeout_seconds,
        delivery = v_new.delivery,
        updated_at = fenceline.clock()
    where l.name = p_name returning * into v_new;
  exception when data_exception or check_violation or not_null_violation then
    raise exception using errcode = 'FL018',
      message = format('lane %L cannot be set to %s: %s', p_name, left(p_changes::text, 200), sqlerrm);
  end;

  if v_new.delivery is not null then
    perform fenceline.check_name('delivery', v_new.delivery);
    if v_new.delivery = 'inline' then
      raise exception using errcode = 'FL018',
        message = format('lane %L cannot be delivered inline: that is for the process that enqueues', p_name);
    end if;
  end if;
  if v_new.slots is not null or v_new.stale_timeout_seconds is not null then
    update fenceline.running r set counted = true where r.lane = p_name and r.counted is null;
  end if;
  if v_new.fair is distinct from v_old.fair then
    update fenceline.ready r set fair = nullif(v_new.fair, false) where r.lane = p_name;
  end if;
  if v_new.ageing_seconds is distinct from v_old.ageing_seconds then
    perform fenceline.rerank_lane(p_name, v_old.ageing_seconds, v_new.ageing_seconds);
  end if;
  if p_changes ? 'kinds' then
    perform fenceline.move_kinds(p_name, p_changes -> 'kinds');
  end if;
  perform fenceline.record_event(p_actor, case when v_before is null then 'lane.create' else 'lane.change' end, p_name,
    null, null, v_before, fenceline.lane_json(v_new));
  perform fenceline.wake(array[p_name]);
  return fenceline.lane_json(v_new);
end;
$$;

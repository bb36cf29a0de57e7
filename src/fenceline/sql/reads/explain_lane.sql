-- Why a lane starts nothing now, if so (explain_job): it is drained, has no slots, or all are in use; who uses them.
-- roles: none
create or replace function fenceline.explain_lane(p_lane fenceline.lane, p_tenant text, p_created_by text) returns jsonb[]
language plpgsql stable as $$
declare
  v_event record;
  v_in_use integer;
  v_slots record;
  v_reasons jsonb[] := '{}';
begin
  if not p_lane.enabled then
    select e.at, e.actor into v_event
    from (select e.at, e.actor, e.before, e.after, e.id from fenceline.event e where e.subject = p_lane.name
          order by e.id desc limit 100) e
    where e.after ->> 'enabled' = 'false' and e.before ->> 'enabled' is distinct from 'false' order by e.id desc limit 1;
    v_reasons := v_reasons || fenceline.reason('lane_drained',
      format('Lane %s is drained%s: nothing in it is started.', p_lane.name, coalesce(', by ' || v_event.actor, '')),
      coalesce(v_event.at, p_lane.updated_at), null,
      jsonb_build_object('lane', p_lane.name, 'actor', v_event.actor),
      array['fenceline lanes resume ' || p_lane.name]);
  end if;
  if p_lane.slots = 0 then
    v_reasons := v_reasons || fenceline.reason('lane_no_slots', format('Lane %s has 0 slots.', p_lane.name),
      p_lane.updated_at, null, jsonb_build_object('lane', p_lane.name),
      array[format('fenceline lanes set %s --slots 1', p_lane.name)]);
  elsif p_lane.slots is not null then
    v_in_use := (select count(*) from fenceline.running r where r.counted and r.lane = p_lane.name);
    if v_in_use >= p_lane.slots then
      select array_agg(h.id) as ids, min(h.claimed_at) as since,
             jsonb_agg(jsonb_build_object('id', h.id, 'claimed_at', h.claimed_at, 'worker', w.name) order by h.claimed_at)
               filter (where h.id is not null) as holders
        into v_slots
      from (select fenceline.seen_job(r.job_id, p_tenant, p_created_by) as id, r.claimed_at, r.worker_id
            from fenceline.running r where r.counted and r.lane = p_lane.name order by r.claimed_at, r.job_id limit 5) h
      left join fenceline.worker w on w.id = h.worker_id;
      v_reasons := v_reasons || fenceline.reason('lane_full',
        format(case when p_lane.slots = 1 then 'The only slot of lane %2$s is in use, for %3$s: %4$s.'
                    else 'All %1$s slots of lane %2$s are in use, the first for %3$s: %4$s.' end, p_lane.slots, p_lane.name,
               fenceline.say_seconds(extract(epoch from fenceline.clock() - v_slots.since)),
               fenceline.say_jobs(v_slots.ids, v_in_use)),
        v_slots.since, null,
        jsonb_build_object('lane', p_lane.name, 'slots', p_lane.slots, 'in_use', v_in_use, 'holders', v_slots.holders),
        array[format('fenceline lanes set %s --slots %s', p_lane.name, p_lane.slots + 1)]
        || array(select 'fenceline jobs explain ' || i from unnest(v_slots.ids) i where i is not null limit 1));
    end if;
  end if;
  return v_reasons;
end;
$$;

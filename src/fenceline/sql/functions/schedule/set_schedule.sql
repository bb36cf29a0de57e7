-- Changes a schedule, or creates it, as an operator: what is said here survives programs that declare the schedule
-- otherwise. Returns the schedule as it is afterwards; its next tick is computed by a scheduler within a second.
--
-- p_changes   any of kind args options cron every timezone misfire misfire_limit windows paused. Null takes the operator's
--             word back: then the code's counts, or the default. cron and every replace each other.
-- p_create    true: it must be new; false: it must exist; null: either
-- Raises FL002, FL030, FL031, and what an enqueue with such options raises.
-- roles: admin
create or replace function fenceline.set_schedule(
  p_name text,
  p_changes jsonb default '{}',
  p_actor text default null,
  p_create boolean default null
) returns jsonb
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_old fenceline.schedule;
  v_new fenceline.schedule;
  v_overrides jsonb;
begin
  perform fenceline.check_name('schedule', fenceline.schedule_name(p_name));
  if jsonb_typeof(p_changes) is distinct from 'object' then
    raise exception using errcode = 'FL031', message = format('changes of schedule %L must be a JSON object', p_name);
  end if;
  perform fenceline.take_verb_lock(1179926089, hashtext(p_name));  -- two that would create it
  select * into v_old from fenceline.schedule s where s.name = p_name for update;
  if found and p_create then
    raise exception using errcode = 'FL031', message = format('schedule %L exists already', p_name);
  elsif v_old.name is null and p_create is false then
    raise exception using errcode = 'FL030', message = format('schedule %L does not exist', p_name);
  end if;

  v_overrides := coalesce(v_old.overrides, '{}');
  if p_changes ?| array['cron', 'every'] then
    v_overrides := v_overrides - array['cron', 'every'];
  end if;
  v_overrides := coalesce(
    (select jsonb_object_agg(e.key, e.value) from jsonb_each(v_overrides || p_changes) e where e.value <> 'null'), '{}');
  v_new := fenceline.store_schedule(p_name, v_old, v_old.declared, v_overrides, p_actor);
  perform fenceline.record_event(p_actor, case when v_old.name is null then 'schedule.create' else 'schedule.change' end,
    fenceline.schedule_name(p_name), coalesce(v_new.options ->> 'tenant', 'default'), null,
    case when v_old.name is not null then coalesce(v_old.declared, '{}') || v_old.overrides end,
    coalesce(v_new.declared, '{}') || v_new.overrides);
  return fenceline.schedule_json(v_new);
end;
$$;

-- Deletes a schedule; its jobs stay. If it is in some code, the next start of that program brings it back: pause it instead.
-- Raises FL030.
-- roles: admin
create or replace function fenceline.delete_schedule(p_name text, p_actor text default null) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_old fenceline.schedule;
begin
  delete from fenceline.schedule s where s.name = p_name returning * into v_old;
  if not found then
    raise exception using errcode = 'FL030', message = format('schedule %L does not exist', p_name);
  end if;
  perform fenceline.record_event(p_actor, 'schedule.delete', fenceline.schedule_name(p_name),
    coalesce(v_old.options ->> 'tenant', 'default'), null,
    coalesce(v_old.declared, '{}') || v_old.overrides, null);
end;
$$;

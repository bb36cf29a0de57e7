-- Records the schedules in a program's code, when it starts. What operators have said about them stays in force; a schedule
-- that is declared as before is left alone. One that has left the code stays until it is deleted.
--
-- p_schedules {"name": {the settings of set_schedule}, …}
-- Raises what set_schedule raises.
-- roles: worker
create or replace function fenceline.declare_schedules(p_schedules jsonb) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_given record;
  v_old fenceline.schedule;
begin
  if jsonb_typeof(p_schedules) is distinct from 'object'
     or jsonb_path_exists(p_schedules, 'strict $.* ? (@.type() != "object")') then
    raise exception using errcode = 'FL031', message = 'schedules must be a JSON object of objects, one per schedule';
  end if;
  for v_given in select e.key as name, e.value as says from jsonb_each(p_schedules) e order by e.key loop
    perform fenceline.check_name('schedule', v_given.name);
    -- As before: a program starts beside an operator who is changing it.
    if not exists (select 1 from fenceline.schedule s where s.name = v_given.name and s.declared = v_given.says) then
      perform fenceline.take_verb_lock(1179926089, hashtext(v_given.name));
      select * into v_old from fenceline.schedule s where s.name = v_given.name for update;
      if v_old.declared is distinct from v_given.says then
        perform fenceline.store_schedule(v_given.name, v_old, v_given.says, coalesce(v_old.overrides, '{}'), null);
      end if;
    end if;
    update fenceline.schedule s set declared_at = fenceline.clock()
    where s.name = any(array(
      select o.name from fenceline.schedule o where o.name = v_given.name for no key update skip locked));
  end loop;
end;
$$;

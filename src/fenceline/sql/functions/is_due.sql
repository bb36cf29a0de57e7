-- True when a task of maintenance has not run for so long anywhere; notes that it runs now. One caller gets true.
-- roles: none
create or replace function fenceline.is_due(p_task text, p_seconds double precision) returns boolean
language plpgsql as $$
declare
  v_now timestamptz := fenceline.clock();
  v_ran timestamptz;
begin
  select m.ran_at into v_ran from fenceline.maintenance m where m.task = p_task;
  if not found then
    insert into fenceline.maintenance (task, ran_at) values (p_task, v_now) on conflict do nothing;
    return found;
  end if;
  if v_ran > v_now - make_interval(secs => p_seconds) then
    return false;
  end if;
  perform 1 from fenceline.maintenance m where m.task = p_task and m.ran_at = v_ran for update skip locked;
  if not found then
    return false;
  end if;
  update fenceline.maintenance set ran_at = v_now where task = p_task;
  return true;
end;
$$;

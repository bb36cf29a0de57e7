-- True when a task of maintenance has not run for so long anywhere; notes that it runs now. One caller gets true.
-- A run that lies ahead means that the clock was set back: then it is due.
-- roles: none
create or replace function fenceline.is_due(p_task text, p_seconds double precision) returns boolean
language plpgsql as $$
declare
  v_ran timestamptz;
  v_now timestamptz;
begin
  select m.ran_at into v_ran from fenceline.maintenance m where m.task = p_task;
  v_now := fenceline.clock();  -- after the look, so that only a clock that was set back is behind it
  if v_ran is null then
    insert into fenceline.maintenance (task, ran_at) values (p_task, v_now) on conflict do nothing;
    return found;
  end if;
  if v_ran > v_now - make_interval(secs => p_seconds) and v_ran <= v_now then
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

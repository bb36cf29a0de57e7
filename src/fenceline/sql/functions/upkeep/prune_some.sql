-- Forgets finished jobs whose retention (per kind and status) is over, by hand; workers do it in smaller steps (drop_days,
-- jobs_to_forget, forget_finished). Returns how many jobs were forgotten, and whether there is more to do: call it again
-- while either says so.
--
-- A partition in which everything is past the longest retention is dropped whole, one with jobs per call; a live
-- straggler in it (a job scheduled far ahead) moves to the default partition first. Elsewhere rows are deleted, p_limit
-- at a time. Waits for no lock longer than a moment; what was not possible now is done next time. A transaction of its own,
-- please: a dropped partition's parents are locked until its end.
-- Needs READ COMMITTED, as drop_days says (FL016).
-- roles: worker
create or replace function fenceline.prune_some(p_limit integer default 10000, out forgotten bigint, out more boolean)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_done record;
begin
  perform fenceline.note_try('drop_days', false);  -- somebody asks for it now
  v_done := fenceline.drop_days(p_limit);
  forgotten := coalesce(v_done.forgotten, 0);
  more := v_done.more;
  if forgotten > 0 then
    return;  -- nothing more under its locks
  end if;
  v_done := fenceline.forget_finished(fenceline.jobs_to_forget(p_limit), p_limit);
  forgotten := coalesce(v_done.forgotten, 0);
  more := more or v_done.more;
end;
$$;

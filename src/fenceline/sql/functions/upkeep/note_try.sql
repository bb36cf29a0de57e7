-- Notes how the try of a task that may_try allowed went. Blocked: the next one comes after a minute, then after twice as
-- long each time, up to p_longest seconds.
-- roles: none
create or replace function fenceline.note_try(p_task text, p_blocked boolean, p_longest double precision default 3600)
returns void
language sql as $$
  update fenceline.maintenance m
  set pause_seconds = case when p_blocked then least(greatest(2 * m.pause_seconds, 60), p_longest) end
  where m.task = p_task and (p_blocked or m.pause_seconds is not null);
$$;

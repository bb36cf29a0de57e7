-- Whether a task of maintenance that needs exclusive locks may be tried now: at once, unless it did not get them the last
-- time (note_try). While it asks for one, claims and enqueues queue up behind it, so it asks ever more rarely.
-- roles: none
create or replace function fenceline.may_try(p_task text) returns boolean
language sql as $$
  select fenceline.is_due(p_task, coalesce(
    (select m.pause_seconds from fenceline.maintenance m where m.task = p_task), 0));
$$;

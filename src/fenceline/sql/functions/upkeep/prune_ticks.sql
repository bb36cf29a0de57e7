-- Forgets ticks that are older than the general retention: at a time more than any fleet makes in a minute.
-- roles: none
create or replace function fenceline.prune_ticks() returns void
language sql as $$
  delete from fenceline.schedule_tick t
  where t.ctid = any (array(
    select o.ctid from fenceline.schedule_tick o
    where o.decided_at < fenceline.clock() - make_interval(secs => (select s.retention_seconds from fenceline.setting s))
    limit 100000));
$$;

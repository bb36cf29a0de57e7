-- Schedules that a scheduler has to look at now, the longest due first.
-- roles: worker
create or replace function fenceline.due_schedules(p_limit integer default 100) returns setof jsonb
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select fenceline.schedule_json(s) from fenceline.schedule s
  where s.due_at <= fenceline.clock() order by s.due_at, s.name limit p_limit;
$$;

-- Every schedule, or one, by name.
-- roles: producer, worker, reader
create or replace function fenceline.schedules(p_name text default null) returns setof jsonb
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select fenceline.schedule_json(s) from fenceline.schedule s
  where p_name is null or s.name = p_name order by s.name;
$$;

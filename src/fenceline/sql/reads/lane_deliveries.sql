-- The lanes that a backend delivers, and which: all others are claimed from the database.
-- roles: producer, worker, reader
create or replace function fenceline.lane_deliveries() returns table (lane text, delivery text, fair boolean)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select l.name, l.delivery, l.fair from fenceline.lane l where l.delivery <> 'postgres' order by l.name;
$$;

-- Which schema this is, for a program that asks at start whether it fits.
-- Returns number, the highest migration applied, and compatible_from, the lowest number a program must know.
-- Reads migration.
-- roles: producer, worker, reader
create or replace function fenceline.schema_version(out number integer, out compatible_from integer)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select coalesce(max(m.number), 0), coalesce(max(m.compatible_from), 0) from fenceline.migration m;
$$;

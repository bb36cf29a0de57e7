-- For which schema the functions in place were made: the number of the last migration they knew. A migration is applied
-- before the functions that need it, so schema_version alone does not tell that they are there.
-- Reads code.
-- roles: producer, worker, reader
create or replace function fenceline.code_number() returns integer
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select coalesce(max(c.number), 0) from fenceline.code c;
$$;

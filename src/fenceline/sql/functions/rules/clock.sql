-- The database's time, the only one that counts. One function, so that a test can move it.
-- roles: none
create or replace function fenceline.clock() returns timestamptz
language sql volatile parallel safe as $$
  select clock_timestamp();
$$;

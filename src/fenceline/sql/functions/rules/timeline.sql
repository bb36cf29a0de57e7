-- The server's timeline: it grows with every promotion of a standby.
-- roles: none
create or replace function fenceline.timeline() returns bigint
language sql stable as $$
  select ('x' || lpad(left(pg_walfile_name(pg_current_wal_lsn()), 8), 16, '0'))::bit(64)::bigint;
$$;

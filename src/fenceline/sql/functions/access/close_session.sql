-- Ends a session; harmless to repeat. Its streams are closed within about a second.
-- roles: admin
create or replace function fenceline.close_session(p_hash bytea) returns void
language sql security definer set search_path = pg_catalog, pg_temp as $$
  delete from fenceline.session s where s.hash = p_hash;
$$;

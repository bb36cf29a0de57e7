-- Notes why a schedule could not be looked at (a zone that this machine does not know, say), and lets it be for a minute.
-- roles: worker
create or replace function fenceline.defer_schedule(p_name text, p_revision bigint, p_error text) returns void
language sql security definer set search_path = pg_catalog, pg_temp as $$
  update fenceline.schedule s set error = left(p_error, 1000), due_at = fenceline.clock() + interval '1 minute'
  where s.name = p_name and s.revision = p_revision and s.due_at <= fenceline.clock();
$$;

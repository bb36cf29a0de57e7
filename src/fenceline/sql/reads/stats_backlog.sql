-- As stats_waiting, of all who enqueue.
-- roles: reader
create or replace function fenceline.stats_backlog(p_tenant text default null, p_most integer default 500000) returns jsonb
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select fenceline.stats_waiting(p_tenant, null, p_most);
$$;

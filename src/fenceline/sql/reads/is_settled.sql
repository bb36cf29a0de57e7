-- Whether every transaction that was open before the given one (follow_jobs) is over.
-- roles: admin
create or replace function fenceline.is_settled(p_transaction text) returns boolean
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select pg_snapshot_xmin(pg_current_snapshot()) > p_transaction::xid8;
$$;

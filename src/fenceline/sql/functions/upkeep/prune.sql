-- prune_some, without a word about whether there is more: 0 may mean that only log lines were deleted.
-- roles: worker
create or replace function fenceline.prune(p_limit integer default 10000) returns bigint
language sql security definer set search_path = pg_catalog, pg_temp as $$
  select p.forgotten from fenceline.prune_some(p_limit) p;
$$;

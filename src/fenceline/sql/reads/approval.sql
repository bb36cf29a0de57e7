-- The setting approval_by_other (see set_approval).
-- roles: producer, worker, reader
create or replace function fenceline.approval() returns boolean
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select s.approval_by_other from fenceline.setting s;
$$;

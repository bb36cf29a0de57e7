-- The first token of all, for platform_admin; it lives for a day. Returns false, and does nothing, when there has ever been another.
-- Locks the table, so that of two servers that start together one does it.
-- roles: admin
create or replace function fenceline.bootstrap_token(p_hash bytea) returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  lock table fenceline.token in share row exclusive mode;
  if exists (select 1 from fenceline.token) then
    return false;
  end if;
  perform fenceline.create_token(p_hash, 'platform_admin', null, 'bootstrap',
    fenceline.clock() + interval '1 day', 'bootstrap');
  return true;
end;
$$;

-- Every role with its permissions, or the one of that name.
-- roles: admin
create or replace function fenceline.list_roles(p_name text default null) returns setof jsonb
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select to_jsonb(r) from fenceline.role r where p_name is null or r.name = p_name order by r.name;
$$;

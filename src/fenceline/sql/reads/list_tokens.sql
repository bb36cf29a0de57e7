-- Tokens of a tenant (null: of all), newest first, without their hashes; p_cursor: the last id of the page before.
-- roles: admin
create or replace function fenceline.list_tokens(
  p_tenant text default null,
  p_limit integer default 100,
  p_cursor integer default null,
  p_valid boolean default null
) returns setof jsonb
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select fenceline.token_json(t) from fenceline.token t
  where (p_tenant is null or t.tenant = p_tenant) and (p_cursor is null or t.id < p_cursor)
    and (p_valid is null
         or p_valid = (t.revoked_at is null and (t.expires_at is null or t.expires_at > fenceline.clock())))
  order by t.id desc limit p_limit;
$$;

-- A token as people may see it: everything but its hash.
-- roles: none
create or replace function fenceline.token_json(p_token fenceline.token) returns jsonb
language sql stable as $$
  select to_jsonb(p_token) - array['hash', 'life_seconds', 'family'];
$$;

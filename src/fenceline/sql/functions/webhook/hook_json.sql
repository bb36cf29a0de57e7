-- A hook as JSON, without its secrets.
-- roles: none
create or replace function fenceline.hook_json(p_hook fenceline.hook) returns jsonb
language sql stable as $$
  select to_jsonb(p_hook) - array['secret', 'previous_secret'];
$$;

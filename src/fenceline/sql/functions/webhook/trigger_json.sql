-- A trigger as JSON, without its secrets.
-- roles: none
create or replace function fenceline.trigger_json(p_trigger fenceline.trigger) returns jsonb
language sql stable as $$
  select to_jsonb(p_trigger) - array['secret', 'previous_secret'];
$$;

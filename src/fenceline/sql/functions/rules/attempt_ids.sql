-- A JSON list of attempt ids as an array; null for null.
-- roles: none
create or replace function fenceline.attempt_ids(p_list jsonb) returns uuid[]
language sql immutable as $$
  select case when jsonb_typeof(p_list) = 'array'
              then array(select e::uuid from jsonb_array_elements_text(p_list) e) end;
$$;

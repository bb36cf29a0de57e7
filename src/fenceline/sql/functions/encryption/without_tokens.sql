-- A value with every encrypted token in it blanked: two that differ in nothing else are the same.
-- roles: none
create or replace function fenceline.without_tokens(p_value jsonb) returns text
language sql immutable parallel safe as $$
  select regexp_replace(p_value::text, '("\$sealed": "|"sealed:)[A-Za-z0-9_=.+/-]+"', '\1"', 'g');
$$;

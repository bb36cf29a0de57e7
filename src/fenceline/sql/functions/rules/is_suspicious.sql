-- Whether JSON text may hold what jsonb, or a reader of it, chokes on: \u0000 or half a surrogate pair; a number so large
-- that the cast fails, or that a few bytes become thousands of digits. One such job would spoil every list it is on.
-- A look at the text, no proof: the caller reads it as jsonb to see.
-- roles: none
create or replace function fenceline.is_suspicious(p_text text) returns boolean
language sql immutable parallel safe as $$
  select p_text ~ '\\u|[0-9][eE][-+]?[0-9]{4}' or octet_length(p_text) > 131072
$$;

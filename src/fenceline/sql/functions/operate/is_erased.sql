-- Whether args are what erase_args leaves.
-- roles: none
create or replace function fenceline.is_erased(p_args json) returns boolean
language sql immutable as $$
  select coalesce(json_typeof(p_args) = 'object' and json_typeof(p_args -> '$erased') = 'object', false);
$$;

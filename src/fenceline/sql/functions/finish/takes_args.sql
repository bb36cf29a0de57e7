-- Whether a handler with this signature may take these args, as far as their names tell. Encrypted args have none.
-- roles: none
create or replace function fenceline.takes_args(p_signature jsonb, p_args jsonb) returns boolean
language sql immutable as $$
  select p_args ? '$sealed' or (
    ((p_signature ->> 'extra')::boolean is true or not exists (
       select 1 from jsonb_object_keys(p_args) a(name) where not p_signature -> 'takes' ? a.name))
    and not exists (
       select 1 from jsonb_each(p_signature -> 'takes') t(name, needed)
       where t.needed = 'true' and not p_args ? t.name));
$$;

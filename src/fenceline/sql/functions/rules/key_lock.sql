-- The number of a key's admission lock. Advisory lock classes: 1179926085 lanes, 1179926086 keys, 1179926087 upkeep.
-- roles: none
create or replace function fenceline.key_lock(p_tenant text, p_key text) returns integer
language sql immutable parallel safe as $$
  select hashtext(p_tenant || '/' || p_key);
$$;

-- An option that must be a string of 1 to 512 characters, or null when it is not there.
-- roles: none
create or replace function fenceline.read_text(p_options jsonb, p_name text) returns text
language plpgsql immutable as $$
begin
  if not p_options ? p_name then
    return null;
  end if;
  if jsonb_typeof(p_options -> p_name) <> 'string' or length(p_options ->> p_name) not between 1 and 512 then
    raise exception using errcode = 'FL007',
      message = format('%s %s is not valid: use a string of 1 to 512 characters', p_name,
                       left((p_options -> p_name)::text, 80));
  end if;
  return p_options ->> p_name;
end;
$$;

-- An option that must be a duration: a number of seconds above 0, or null when it is not there. Raises FL007.
-- roles: none
create or replace function fenceline.read_seconds(p_options jsonb, p_name text) returns double precision
language plpgsql immutable as $$
begin
  if p_options ->> p_name is null then
    return null;
  end if;
  if jsonb_typeof(p_options -> p_name) <> 'number' or (p_options ->> p_name)::numeric <= 0
     or (p_options ->> p_name)::numeric > 1000000000 then
    raise exception using errcode = 'FL007',
      message = format('%s %s is out of range: use a number of seconds above 0, at most 1000000000', p_name,
                       left((p_options -> p_name)::text, 80));
  end if;
  return (p_options ->> p_name)::double precision;
end;
$$;

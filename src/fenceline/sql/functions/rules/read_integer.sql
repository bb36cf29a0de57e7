-- An option that must be a whole number between two bounds; raises p_errcode with value and rule.
-- roles: none
create or replace function fenceline.read_integer(p_options jsonb, p_name text, p_least integer, p_most integer,
                                                  p_errcode text)
returns integer
language plpgsql immutable as $$
begin
  if jsonb_typeof(p_options -> p_name) <> 'number'
     or (p_options ->> p_name)::numeric <> trunc((p_options ->> p_name)::numeric)
     or (p_options ->> p_name)::numeric not between p_least and p_most then
    raise exception using errcode = p_errcode,
      message = format('%s %s is out of range: use a whole number from %s to %s', p_name,
                       left((p_options -> p_name)::text, 80), p_least, p_most);
  end if;
  return (p_options ->> p_name)::numeric::integer;
end;
$$;

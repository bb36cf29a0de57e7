-- Raises FL002 unless the value is a name as kinds, lanes, tenants and roles have them.
-- roles: none
create or replace function fenceline.check_name(p_what text, p_value text) returns void
language plpgsql immutable as $$
begin
  if p_value is null or p_value !~ '^[a-z0-9_.-]{1,64}$' then
    raise exception using errcode = 'FL002',
      message = format('%s %s is not a valid name: use 1 to 64 of a-z, 0-9, "_", "." and "-"',
                       p_what, coalesce(quote_literal(left(p_value, 80)), 'null'));
  end if;
end;
$$;

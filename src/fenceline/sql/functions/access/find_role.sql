-- A role's row; raises FL040 when there is none of that name.
-- roles: none
create or replace function fenceline.find_role(p_name text) returns fenceline.role
language plpgsql stable as $$
declare
  v_role fenceline.role;
begin
  select * into v_role from fenceline.role r where r.name = p_name;
  if not found then
    raise exception using errcode = 'FL040',
      message = format('role %L does not exist', left(p_name, 80)),
      hint = 'There are ' || (select string_agg(r.name, ', ' order by r.name) from fenceline.role r) || '.';
  end if;
  return v_role;
end;
$$;

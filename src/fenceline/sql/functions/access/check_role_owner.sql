-- Raises FL043 unless somebody with these permissions may change roles. Roles belong to all tenants, so that takes one who
-- crosses tenants; null: whoever may write to the database itself.
-- roles: none
create or replace function fenceline.check_role_owner(p_permissions text[]) returns void
language plpgsql immutable as $$
begin
  if p_permissions is not null and not '*' = any(p_permissions) then
    raise exception using errcode = 'FL043', message = 'roles belong to all tenants: only platform_admin changes them';
  end if;
end;
$$;

-- Raises FL043 unless somebody with p_permissions, bound to p_tenant (null: to none), may hand out these permissions in
-- that tenant: nobody gives away what he does not have himself.
-- p_permissions   null: whoever may write to the database itself
-- roles: none
create or replace function fenceline.check_grant(p_permissions text[], p_tenant text, p_given text[], p_given_tenant text)
returns void
language plpgsql immutable as $$
begin
  if p_tenant is not null and p_given_tenant is distinct from p_tenant then
    raise exception using errcode = 'FL043',
      message = format('tenant %L is not yours to hand out tokens in', p_given_tenant);
  end if;
  if p_permissions is not null and not '*' = any(p_permissions) and not p_given <@ p_permissions then
    raise exception using errcode = 'FL043',
      message = format('the permissions %s are not yours to give', array_to_string(
        array(select g from unnest(p_given) g where g <> all(p_permissions)), ', '));
  end if;
  if 'jobs:hide_args' = any(p_permissions) and not 'jobs:hide_args' = any(p_given) then  -- what it takes away, stays away
    raise exception using errcode = 'FL043', message = 'a role without jobs:hide_args is not yours to give';
  end if;
end;
$$;

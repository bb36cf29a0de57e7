-- Deletes a role of the database's own that no valid token has. Raises FL040, FL043, FL045 (built in, or in use).
-- p_actor_tenant is not used any more: the event is in every tenant's audit.
-- roles: admin
create or replace function fenceline.delete_role(
  p_name text,
  p_actor text default null,
  p_granter_permissions text[] default null,
  p_actor_tenant text default null
) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_role fenceline.role := fenceline.find_role(p_name);
begin
  perform fenceline.check_role_owner(p_granter_permissions);
  if v_role.built_in then
    raise exception using errcode = 'FL045', message = format('role %L is built in and cannot be deleted', p_name);
  end if;
  if exists (select 1 from fenceline.token t where t.role = p_name and t.revoked_at is null
               and (t.expires_at is null or t.expires_at > fenceline.clock())) then
    raise exception using errcode = 'FL045', message = format('role %L is in use', p_name),
      hint = 'Revoke its tokens first.';
  end if;
  perform fenceline.record_event(p_actor, 'role.delete', 'role ' || p_name, null, null, to_jsonb(v_role), null);
  delete from fenceline.role where name = p_name;
end;
$$;

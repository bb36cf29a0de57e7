-- Creates or changes a role of the database's own; those that were seeded stay as they are.
--
-- p_permissions   the whole list; null: as before (none for a new role)
-- p_own_jobs      whether its job verbs reach only what its actor enqueued; null: as before (true for a new role)
-- p_create        true: it must be new; false: it must exist; null: either
-- p_granter_permissions   as in create_token
-- p_actor_tenant  not used any more: the event is in every tenant's audit
-- Returns the role as list_roles shows it. Raises FL002, FL040, FL042 (unknown permission), FL043, FL044 (exists),
-- FL045 (built in).
-- roles: admin
create or replace function fenceline.set_role(
  p_name text,
  p_permissions text[] default null,
  p_own_jobs boolean default null,
  p_actor text default null,
  p_create boolean default null,
  p_granter_permissions text[] default null,
  p_actor_tenant text default null
) returns jsonb
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_role fenceline.role;
  v_before jsonb;
  v_bad text;
begin
  perform fenceline.check_name('role', p_name);
  select string_agg(p, ', ') into v_bad from unnest(p_permissions) p where p <> all(fenceline.known_permissions());
  if v_bad is not null or array_position(p_permissions, null) is not null then
    raise exception using errcode = 'FL042',
      message = format('permission %s is unknown', coalesce(left(v_bad, 200), 'null')),
      hint = 'Permissions are ' || array_to_string(fenceline.known_permissions(), ', ') || '.';
  end if;
  perform fenceline.check_role_owner(p_granter_permissions);
  insert into fenceline.role (name, permissions) values (p_name, '{}') on conflict do nothing;
  if found then
    if p_create is false then
      raise exception using errcode = 'FL040', message = format('role %L does not exist', p_name);
    end if;
  elsif p_create then
    raise exception using errcode = 'FL044', message = format('role %L exists already', p_name);
  else
    select to_jsonb(r) into v_before from fenceline.role r where r.name = p_name for update;
  end if;
  if (v_before ->> 'built_in')::boolean then
    raise exception using errcode = 'FL045', message = format('role %L is built in and stays as it is', p_name),
      hint = 'Make a role of your own.';
  end if;
  update fenceline.role r
  set permissions = case when p_permissions is null then r.permissions
                         else array(select distinct p from unnest(p_permissions) p order by p) end,
      own_jobs = coalesce(p_own_jobs, r.own_jobs)
  where r.name = p_name
  returning * into v_role;
  perform fenceline.record_event(p_actor, case when v_before is null then 'role.create' else 'role.change' end,
    'role ' || p_name, null, null, v_before, to_jsonb(v_role));
  return to_jsonb(v_role);
end;
$$;

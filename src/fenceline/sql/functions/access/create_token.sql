-- Makes a token. The secret itself never comes here, only its SHA-256.
--
-- p_hash                 32 bytes
-- p_name                 the actor; null: made up from the role and the token's number
-- p_tenant               null: `default`
-- p_expires_at           null: after setting.token_seconds; 'infinity': never
-- p_granter_permissions, p_granter_tenant   what the one who asks may give; null: anything, anywhere
-- Returns the token as list_tokens shows it. Raises FL002 (tenant), FL040, FL042 (name, expiry), FL043.
-- roles: admin
create or replace function fenceline.create_token(
  p_hash bytea,
  p_role text,
  p_tenant text default null,
  p_name text default null,
  p_expires_at timestamptz default null,
  p_actor text default null,
  p_granter_permissions text[] default null,
  p_granter_tenant text default null
) returns jsonb
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_role fenceline.role := fenceline.find_role(p_role);
  v_now timestamptz := fenceline.clock();
  v_token fenceline.token;
  v_json jsonb;
begin
  p_tenant := coalesce(p_tenant, 'default');
  perform fenceline.check_name('tenant', p_tenant);
  -- To reach the jobs of others is as good as the permission for it.
  perform fenceline.check_grant(p_granter_permissions, p_granter_tenant, v_role.permissions || case
    when not v_role.own_jobs and exists (select 1 from unnest(v_role.permissions) p where starts_with(p, 'jobs:'))
    then array['jobs:read_all'] else '{}'::text[] end, p_tenant);
  if v_role.all_tenants and p_granter_tenant is not null then
    raise exception using errcode = 'FL043',
      message = format('role %L reaches all tenants: it is not yours to give', p_role);
  end if;
  -- A colon marks actors that are no tokens, such as those of OIDC.
  if p_name !~ '^[^:[:cntrl:]]{1,100}$' then
    raise exception using errcode = 'FL042',
      message = format('name %L of a token must have 1 to 100 characters, without a colon', left(p_name, 120));
  end if;
  p_expires_at := nullif(
    coalesce(p_expires_at, (select v_now + make_interval(secs => s.token_seconds) from fenceline.setting s)), 'infinity');
  if p_expires_at <= v_now then
    raise exception using errcode = 'FL042', message = format('a token that expires at %s is of no use', p_expires_at);
  end if;
  insert into fenceline.token (hash, name, role, tenant, created_at, created_by, expires_at, life_seconds)
  values (p_hash, coalesce(p_name, ''), p_role, p_tenant, v_now, p_actor, p_expires_at,
          extract(epoch from p_expires_at - v_now))
  returning * into v_token;
  if p_name is null then
    update fenceline.token t set name = p_role || '-' || v_token.id where t.id = v_token.id returning * into v_token;
  end if;
  v_json := fenceline.token_json(v_token);
  perform fenceline.record_event(p_actor, 'token.create', 'token ' || v_token.id, p_tenant, null, null, v_json);
  return v_json;
end;
$$;

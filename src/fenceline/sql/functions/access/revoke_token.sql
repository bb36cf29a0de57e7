-- Revokes a token, for good, and with it all that its bearer got by replacing it (rotate_token): whoever has one of them could
-- get the next. Harmless to repeat. Returns it. Raises FL041 when it is not there, or in another tenant than
-- p_tenant (null: any).
-- roles: admin
create or replace function fenceline.revoke_token(p_id integer, p_actor text default null, p_tenant text default null)
returns jsonb
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_token fenceline.token;
  v_one fenceline.token;
  v_before jsonb;
begin
  select * into v_token from fenceline.token t where t.id = p_id and (p_tenant is null or t.tenant = p_tenant);
  if not found then
    raise exception using errcode = 'FL041', message = format('token %s does not exist', p_id);
  end if;
  loop  -- one by one: each look sees what a rotation that we waited for has made
    select * into v_one from fenceline.token t
    where coalesce(t.family, t.id) = coalesce(v_token.family, v_token.id) and t.revoked_at is null
      and (t.id = p_id or t.expires_at is null or t.expires_at > fenceline.clock())
    order by t.id limit 1 for update;
    exit when not found;
    v_before := fenceline.token_json(v_one);
    update fenceline.token t set revoked_at = fenceline.clock() where t.id = v_one.id returning * into v_one;
    perform fenceline.record_event(p_actor, 'token.revoke', 'token ' || v_one.id, v_one.tenant, null, v_before,
      fenceline.token_json(v_one));
  end loop;
  return (select fenceline.token_json(t) from fenceline.token t where t.id = p_id);
end;
$$;

-- Revokes a token, for good; harmless to repeat. Returns it. Raises FL041 when it is not there, or in another tenant than
-- p_tenant (null: any).
-- roles: admin
create or replace function fenceline.revoke_token(p_id integer, p_actor text default null, p_tenant text default null)
returns jsonb
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_token fenceline.token;
  v_before jsonb;
begin
  select * into v_token from fenceline.token t where t.id = p_id and (p_tenant is null or t.tenant = p_tenant) for update;
  if not found then
    raise exception using errcode = 'FL041', message = format('token %s does not exist', p_id);
  end if;
  if v_token.revoked_at is null then
    v_before := fenceline.token_json(v_token);
    update fenceline.token t set revoked_at = fenceline.clock() where t.id = p_id returning * into v_token;
    perform fenceline.record_event(p_actor, 'token.revoke', 'token ' || p_id, v_token.tenant, null, v_before,
      fenceline.token_json(v_token));
  end if;
  return fenceline.token_json(v_token);
end;
$$;

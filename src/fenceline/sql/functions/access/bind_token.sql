-- Binds a token to lanes and kinds: it may enqueue and claim only there and only these. Null: any. Audited.
-- Returns the token. Raises FL002, FL041.
-- roles: admin
create or replace function fenceline.bind_token(p_id integer, p_lanes text[], p_kinds text[], p_actor text default null)
returns jsonb
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_token fenceline.token;
begin
  perform fenceline.check_name('lane', n) from unnest(p_lanes) n;
  perform fenceline.check_name('kind', n) from unnest(p_kinds) n;
  update fenceline.token t set lanes = p_lanes, kinds = p_kinds where t.id = p_id returning * into v_token;
  if not found then
    raise exception using errcode = 'FL041', message = format('token %s does not exist', p_id);
  end if;
  perform fenceline.record_event(p_actor, 'token.bind', 'token ' || p_id, v_token.tenant, null, null,
    fenceline.token_json(v_token));
  return fenceline.token_json(v_token);
end;
$$;

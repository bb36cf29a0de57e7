-- Deletes an outgoing webhook; deliveries that are under way fail. Raises FL060 when it is not there, or in another tenant
-- than p_tenant (null: any).
-- roles: admin
create or replace function fenceline.delete_hook(p_id integer, p_tenant text default null, p_actor text default null)
returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_hook fenceline.hook;
begin
  delete from fenceline.hook h where h.id = p_id and (p_tenant is null or h.tenant = p_tenant) returning * into v_hook;
  if not found then
    raise exception using errcode = 'FL060', message = format('hook %s does not exist', p_id);
  end if;
  perform fenceline.record_event(p_actor, 'hook.delete', 'hook ' || p_id, v_hook.tenant, null,
                                 fenceline.hook_json(v_hook), null);
end;
$$;

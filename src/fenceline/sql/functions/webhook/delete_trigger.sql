-- Deletes a tenant's incoming webhook. Raises FL047.
-- roles: admin
create or replace function fenceline.delete_trigger(p_name text, p_tenant text, p_actor text default null) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_trigger fenceline.trigger;
begin
  delete from fenceline.trigger t where t.name = p_name and t.tenant = p_tenant returning * into v_trigger;
  if not found then
    raise exception using errcode = 'FL047', message = format('trigger %L does not exist', left(p_name, 80));
  end if;
  perform fenceline.record_event(p_actor, 'trigger.delete', p_name, p_tenant, null,
                                 fenceline.trigger_json(v_trigger), null);
end;
$$;

-- The args of the job that a trigger makes of a body: its own args, and on top what its map finds in the body, or the body
-- itself where it has no map. A path that finds nothing leaves its argument out.
-- Raises FL048 when there is no map and the body is no object.
-- roles: admin
create or replace function fenceline.trigger_args(p_name text, p_tenant text, p_body jsonb) returns jsonb
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_trigger fenceline.trigger;
begin
  select * into v_trigger from fenceline.trigger t where t.name = p_name and t.tenant = p_tenant;
  if v_trigger.map is null then
    if jsonb_typeof(p_body) is distinct from 'object' then
      raise exception using errcode = 'FL048',
        message = format('the body for trigger %L must be a JSON object: it has no map', p_name);
    end if;
    return v_trigger.args || p_body;
  end if;
  return v_trigger.args || coalesce((
    select jsonb_object_agg(m.key, f.value)
    from jsonb_each_text(v_trigger.map) m
    cross join lateral jsonb_path_query_first(p_body, m.value::jsonpath, '{}', true) f(value)
    where f.value is not null), '{}');
end;
$$;

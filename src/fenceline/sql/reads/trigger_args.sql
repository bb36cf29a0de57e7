-- The args of the job that a trigger makes of a body: its own args, and on top what its map finds in the body, or the body
-- itself where it has no map. A path that finds nothing leaves its argument out.
-- Raises FL047 when the trigger is gone, FL048 when there is no map and the body is no object, or when a path of the map
-- looks into every depth (**): such maps are from before create_trigger refused them.
-- roles: admin
create or replace function fenceline.trigger_args(p_name text, p_tenant text, p_body jsonb) returns jsonb
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_trigger fenceline.trigger;
  v_argument text;
begin
  select * into v_trigger from fenceline.trigger t where t.name = p_name and t.tenant = p_tenant;
  if not found then
    raise exception using errcode = 'FL047', message = format('trigger %L does not exist', left(p_name, 80));
  end if;
  if v_trigger.map is null then
    if jsonb_typeof(p_body) is distinct from 'object' then
      raise exception using errcode = 'FL048',
        message = format('the body for trigger %L must be a JSON object: it has no map', p_name);
    end if;
    return v_trigger.args || p_body;
  end if;
  for v_argument in
    select m.key from jsonb_each_text(v_trigger.map) m where fenceline.is_recursive_path(m.value::jsonpath)
  loop
    raise exception using errcode = 'FL048',
      message = format('the path of argument %L of trigger %L looks into every depth (**), which has no bound',
                       v_argument, p_name),
      hint = 'Delete the trigger and make it anew with a path such as "$.repository.name".';
  end loop;
  return v_trigger.args || coalesce((
    select jsonb_object_agg(m.key, f.value)
    from jsonb_each_text(v_trigger.map) m
    cross join lateral jsonb_path_query_first(p_body, m.value::jsonpath, '{}', true) f(value)
    where f.value is not null), '{}');
end;
$$;

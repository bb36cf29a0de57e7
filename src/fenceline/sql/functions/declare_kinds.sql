-- Records what the decorators of a program say about its kinds, and creates the lanes they name. An operator's settings
-- (the lane that lists the kind, the settings of a lane that is there) are left alone.
--
-- p_kinds     {"kind": {"lane", "priority", "max_attempts", "retry", "timeout", "retention", "finalizer"}, …}
-- Raises FL002, FL003, FL004, FL007.
-- roles: worker
create or replace function fenceline.declare_kinds(p_kinds jsonb) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_kind record;
begin
  if jsonb_typeof(p_kinds) is distinct from 'object'
     or jsonb_path_exists(p_kinds, 'strict $.* ? (@.type() != "object")') then
    raise exception using errcode = 'FL007', message = 'kinds must be a JSON object of objects, one per kind';
  end if;
  for v_kind in select e.key as name, e.value as says from jsonb_each(p_kinds) e order by e.key loop
    perform fenceline.check_name('kind', v_kind.name);
    if v_kind.says ->> 'lane' is not null then
      perform fenceline.check_name('lane', v_kind.says ->> 'lane');
      insert into fenceline.lane (name) values (v_kind.says ->> 'lane') on conflict do nothing;
    end if;
    perform fenceline.retry_delay(nullif(v_kind.says -> 'retry', 'null'), 1);
    perform fenceline.check_retention(v_kind.name, nullif(v_kind.says -> 'retention', 'null'));
    insert into fenceline.kind (name, default_lane, priority, max_attempts, retry, timeout_seconds, retention, finalizer)
    values (v_kind.name, v_kind.says ->> 'lane',
            case when v_kind.says ->> 'priority' is not null
                 then fenceline.read_integer(v_kind.says, 'priority', -32768, 32767, 'FL003') end,
            case when v_kind.says ->> 'max_attempts' is not null
                 then fenceline.read_integer(v_kind.says, 'max_attempts', 1, 1000, 'FL004') end,
            nullif(v_kind.says -> 'retry', 'null'), fenceline.read_seconds(v_kind.says, 'timeout'),
            nullif(v_kind.says -> 'retention', 'null'), coalesce(v_kind.says -> 'finalizer' = 'true', false))
    on conflict (name) do update
      set default_lane = excluded.default_lane, priority = excluded.priority, max_attempts = excluded.max_attempts,
          retry = excluded.retry, timeout_seconds = excluded.timeout_seconds, retention = excluded.retention,
          finalizer = excluded.finalizer
      where (kind.default_lane, kind.priority, kind.max_attempts, kind.retry, kind.timeout_seconds, kind.retention,
             kind.finalizer)
        is distinct from (excluded.default_lane, excluded.priority, excluded.max_attempts, excluded.retry,
                          excluded.timeout_seconds, excluded.retention, excluded.finalizer);
  end loop;
end;
$$;

-- Records what the decorators of a program say about its kinds, and creates the lanes they name. An operator's settings
-- (the lane that lists the kind, the settings of a lane that is there) are left alone.
--
-- p_kinds     {"kind": {"lane", "priority", "max_attempts", "retry", "timeout", "retention", "finalizer",
--             "needs_approval", "identities"}, …}; programs from before the last two leave those as they are
-- What is as they say already is not written, so that a worker starts beside an operator who is changing it.
-- Raises FL002, FL003, FL004, FL007.
-- roles: worker
create or replace function fenceline.declare_kinds(p_kinds jsonb) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_kind record;
  v_new fenceline.kind;
begin
  if jsonb_typeof(p_kinds) is distinct from 'object'
     or jsonb_path_exists(p_kinds, 'strict $.* ? (@.type() != "object")') then
    raise exception using errcode = 'FL007', message = 'kinds must be a JSON object of objects, one per kind';
  end if;
  for v_kind in select e.key as name, e.value as says from jsonb_each(p_kinds) e order by e.key loop
    perform fenceline.check_name('kind', v_kind.name);
    if v_kind.says ->> 'lane' is not null then
      perform fenceline.check_name('lane', v_kind.says ->> 'lane');
      insert into fenceline.lane (name) select v_kind.says ->> 'lane'
      where not exists (select 1 from fenceline.lane n where n.name = v_kind.says ->> 'lane') on conflict do nothing;
    end if;
    perform fenceline.retry_delay(nullif(v_kind.says -> 'retry', 'null'), 1);
    perform fenceline.check_identities(v_kind.name, nullif(v_kind.says -> 'identities', 'null'));
    perform fenceline.check_retention(v_kind.name, nullif(v_kind.says -> 'retention', 'null'));
    v_new.default_lane := v_kind.says ->> 'lane';
    v_new.priority := case when v_kind.says ->> 'priority' is not null
                           then fenceline.read_integer(v_kind.says, 'priority', -32768, 32767, 'FL003') end;
    v_new.max_attempts := case when v_kind.says ->> 'max_attempts' is not null
                               then fenceline.read_integer(v_kind.says, 'max_attempts', 1, 1000, 'FL004') end;
    v_new.retry := nullif(v_kind.says -> 'retry', 'null');
    v_new.timeout_seconds := fenceline.read_seconds(v_kind.says, 'timeout');
    v_new.retention := nullif(v_kind.says -> 'retention', 'null');
    v_new.finalizer := coalesce(v_kind.says -> 'finalizer' = 'true', false);
    if not exists (
      select 1 from fenceline.kind k
      where k.name = v_kind.name
        and (k.default_lane, k.priority, k.max_attempts, k.retry, k.timeout_seconds, k.retention, k.finalizer)
          is not distinct from (v_new.default_lane, v_new.priority, v_new.max_attempts, v_new.retry,
                                v_new.timeout_seconds, v_new.retention, v_new.finalizer)
    ) then
      insert into fenceline.kind (name, default_lane, priority, max_attempts, retry, timeout_seconds, retention, finalizer)
      values (v_kind.name, v_new.default_lane, v_new.priority, v_new.max_attempts, v_new.retry, v_new.timeout_seconds,
              v_new.retention, v_new.finalizer)
      on conflict (name) do update
        set default_lane = excluded.default_lane, priority = excluded.priority, max_attempts = excluded.max_attempts,
            retry = excluded.retry, timeout_seconds = excluded.timeout_seconds, retention = excluded.retention,
            finalizer = excluded.finalizer;
    end if;
    if v_kind.says ?| array['needs_approval', 'identities'] then
      update fenceline.kind k
      set needs_approval = nullif(v_kind.says -> 'needs_approval' = 'true', false),
          identities = nullif(v_kind.says -> 'identities', 'null')
      where k.name = v_kind.name
        and (k.needs_approval, k.identities) is distinct from
            (nullif(v_kind.says -> 'needs_approval' = 'true', false), nullif(v_kind.says -> 'identities', 'null'));
    end if;
  end loop;
end;
$$;

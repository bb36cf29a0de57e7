-- Makes an incoming webhook of a tenant: a signed request to it enqueues a job. Returns it, without the secret.
--
-- p_settings  kind (required), args, map, options, scheme (fenceline), idempotency_header (webhook-id, where the scheme is
--             standard), dedupe_header, window_seconds (300); see the table
-- p_secret    what requests are signed with, 16 to 200 characters
-- Raises FL002, FL044 (exists), FL048, and what an enqueue with such options raises.
-- roles: admin
create or replace function fenceline.create_trigger(
  p_name text,
  p_settings jsonb,
  p_secret text,
  p_tenant text,
  p_actor text default null
) returns jsonb
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_trigger fenceline.trigger;
  v_path record;
  v_header text;
begin
  perform fenceline.check_name('trigger', p_name);
  perform fenceline.check_name('tenant', p_tenant);
  perform fenceline.check_name('kind', p_settings ->> 'kind');
  v_trigger.tenant := p_tenant;
  v_trigger.name := p_name;
  v_trigger.kind := p_settings ->> 'kind';
  v_trigger.secret := p_secret;
  v_trigger.args := coalesce(nullif(p_settings -> 'args', 'null'), '{}');
  v_trigger.map := nullif(p_settings -> 'map', 'null');
  v_trigger.options := coalesce(nullif(p_settings -> 'options', 'null'), '{}');
  v_trigger.idempotency_header := lower(p_settings ->> 'idempotency_header');
  v_trigger.dedupe_header := lower(p_settings ->> 'dedupe_header');
  v_trigger.scheme := coalesce(p_settings ->> 'scheme', 'fenceline');
  if v_trigger.scheme = 'standard' and not p_settings ? 'idempotency_header' then
    v_trigger.idempotency_header := 'webhook-id';
  end if;
  v_trigger.window_seconds := 300;
  v_trigger.enabled := true;
  v_trigger.created_at := fenceline.clock();
  v_trigger.created_by := p_actor;
  if p_settings ->> 'window_seconds' is not null then
    v_trigger.window_seconds := fenceline.read_integer(p_settings, 'window_seconds', 1, 86400, 'FL048');
  end if;
  if v_trigger.scheme not in ('fenceline', 'github', 'slack', 'stripe', 'standard') then
    raise exception using errcode = 'FL048',
      message = format('scheme %L of trigger %L is unknown', left(v_trigger.scheme, 80), p_name),
      hint = 'Use fenceline, github, slack, stripe or standard.';
  end if;
  if p_secret is null or length(p_secret) not between 16 and 2000 then
    raise exception using errcode = 'FL048',
      message = format('the secret of trigger %L must have 16 to 200 characters', p_name);
  end if;
  if jsonb_typeof(v_trigger.args) <> 'object' or jsonb_typeof(v_trigger.options) <> 'object'
     or jsonb_typeof(coalesce(v_trigger.map, '{}')) <> 'object' then
    raise exception using errcode = 'FL048',
      message = format('args, map and options of trigger %L must be JSON objects', p_name);
  end if;
  perform fenceline.check_outside_kind(v_trigger.kind);
  perform fenceline.read_options(v_trigger.kind, v_trigger.options);
  perform fenceline.check_identity(k.name, v_trigger.options ->> 'identity', p_tenant,
                                   v_trigger.options ->> 'actor_role', k.identities)
  from fenceline.kind k where k.name = v_trigger.kind;
  for v_path in select m.key, m.value from jsonb_each(coalesce(v_trigger.map, '{}')) m loop
    begin
      perform (v_path.value #>> '{}')::jsonpath;
      if jsonb_typeof(v_path.value) <> 'string' then
        raise exception using errcode = 'data_exception', message = 'use a string';
      end if;
      if fenceline.is_recursive_path((v_path.value #>> '{}')::jsonpath) then
        raise exception using errcode = 'data_exception', message = 'it looks into every depth (**), which has no bound';
      end if;
    exception when data_exception or syntax_error then
      raise exception using errcode = 'FL048',
        message = format('path %s of argument %L is not valid: %s', left(v_path.value::text, 200), v_path.key, sqlerrm),
        hint = 'Use a path such as "$.repository.name".';
    end;
  end loop;
  foreach v_header in array array[v_trigger.idempotency_header, v_trigger.dedupe_header] loop
    if v_header !~ '^[a-z0-9-]{1,100}$' then
      raise exception using errcode = 'FL048',
        message = format('header %L of trigger %L is not the name of one', left(v_header, 120), p_name);
    end if;
  end loop;
  insert into fenceline.trigger (tenant, name, kind, secret, args, map, options, idempotency_header, dedupe_header,
                                 scheme, window_seconds, enabled, created_at, created_by, fired_at)
  select v_trigger.tenant, v_trigger.name, v_trigger.kind, v_trigger.secret, v_trigger.args, v_trigger.map,
         v_trigger.options, v_trigger.idempotency_header, v_trigger.dedupe_header, v_trigger.scheme, v_trigger.window_seconds,
         v_trigger.enabled, v_trigger.created_at, v_trigger.created_by, v_trigger.fired_at
  on conflict do nothing;
  if not found then
    raise exception using errcode = 'FL044', message = format('trigger %L exists already', p_name);
  end if;
  perform fenceline.record_event(p_actor, 'trigger.create', p_name, p_tenant, null, null,
                                 fenceline.trigger_json(v_trigger));
  return fenceline.trigger_json(v_trigger);
end;
$$;

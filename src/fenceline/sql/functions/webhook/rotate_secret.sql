-- Gives a trigger (by name and tenant) or a hook (by number) a new secret. The old one goes on being valid for so many seconds: requests
-- may be signed with either, deliveries are signed with both. One that was valid from before is not any more. Returns the trigger
-- or hook, without secrets. Audited.
-- Raises FL047 (trigger) or FL060 (hook) when it is not there, or in another tenant than p_tenant (hooks; null: any), FL007.
-- roles: admin
create or replace function fenceline.rotate_secret(
  p_trigger text,
  p_hook_id integer,
  p_tenant text,
  p_secret text,
  p_overlap_seconds double precision default 86400,
  p_actor text default null
) returns jsonb
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_until timestamptz;
  v_trigger fenceline.trigger;
  v_hook fenceline.hook;
begin
  if p_overlap_seconds is null or not p_overlap_seconds between 0 and 2592000 then
    raise exception using errcode = 'FL007',
      message = format('overlap %s is out of range: use 0 to 2592000 seconds (30 days)', p_overlap_seconds);
  end if;
  if p_secret is null or length(p_secret) not between 16 and 2000 then
    raise exception using errcode = 'FL007', message = 'a secret must have 16 to 200 characters';
  end if;
  v_until := fenceline.clock() + make_interval(secs => p_overlap_seconds);
  if p_trigger is not null then
    update fenceline.trigger t set secret = p_secret, previous_secret = t.secret, previous_until = v_until
    where t.name = p_trigger and t.tenant = p_tenant returning * into v_trigger;
    if not found then
      raise exception using errcode = 'FL047', message = format('trigger %L does not exist', p_trigger);
    end if;
    perform fenceline.record_event(p_actor, 'trigger.rotate', p_trigger, p_tenant, null, null,
                                   jsonb_build_object('previous_until', v_until));
    return fenceline.trigger_json(v_trigger);
  end if;
  update fenceline.hook h set secret = p_secret, previous_secret = h.secret, previous_until = v_until
  where h.id = p_hook_id and (p_tenant is null or h.tenant = p_tenant) returning * into v_hook;
  if not found then
    raise exception using errcode = 'FL060', message = format('hook %s does not exist', p_hook_id);
  end if;
  perform fenceline.record_event(p_actor, 'hook.rotate', 'hook ' || p_hook_id, v_hook.tenant, null, null,
                                 jsonb_build_object('previous_until', v_until));
  return fenceline.hook_json(v_hook);
end;
$$;

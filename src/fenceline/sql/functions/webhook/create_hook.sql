-- Makes an outgoing webhook of a tenant: whenever one of its jobs ends, a job of kind `fenceline.webhook` is enqueued in the
-- same transaction, and posts the ended job to the address. Returns it, without the secret.
--
-- p_kinds     of the jobs; null: every kind
-- p_statuses  null: every end
-- p_secret    what deliveries are signed with
-- Raises FL061.
-- roles: admin
create or replace function fenceline.create_hook(
  p_url text,
  p_secret text,
  p_tenant text,
  p_kinds text[] default null,
  p_statuses text[] default null,
  p_actor text default null
) returns jsonb
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_hook fenceline.hook;
  v_kind text;
  v_all text[] := array['succeeded', 'succeeded_with_errors', 'failed', 'cancelled'];
begin
  perform fenceline.check_name('tenant', p_tenant);
  if p_url is null or p_url !~ '^https?://[^/?#\s]+' or length(p_url) > 2000 or p_url ~ '[\s[:cntrl:]]' then
    raise exception using errcode = 'FL061',
      message = format('url %L is not valid: use https://host/path, at most 2000 characters', left(p_url, 200));
  end if;
  if p_secret is null or length(p_secret) not between 16 and 2000 then
    raise exception using errcode = 'FL061', message = 'the secret of a hook must have 16 to 200 characters';
  end if;
  foreach v_kind in array coalesce(p_kinds, '{}') loop
    perform fenceline.check_name('kind', v_kind);
  end loop;
  if not coalesce(p_statuses, v_all) <@ v_all or cardinality(p_statuses) = 0 or cardinality(p_kinds) = 0 then
    raise exception using errcode = 'FL061',
      message = 'kinds and statuses of a hook must name some; statuses are ' || array_to_string(v_all, ', ');
  end if;
  if (select count(*) from fenceline.hook h where h.tenant = p_tenant) >= 100 then
    raise exception using errcode = 'FL061', message = 'a tenant has at most 100 hooks: delete one first';
  end if;
  insert into fenceline.hook (tenant, url, secret, kinds, statuses, created_at, created_by)
  values (p_tenant, p_url, p_secret, p_kinds, coalesce(p_statuses, v_all), fenceline.clock(), p_actor)
  returning * into v_hook;
  perform fenceline.record_event(p_actor, 'hook.create', 'hook ' || v_hook.id, p_tenant, null, null,
                                 fenceline.hook_json(v_hook));
  return fenceline.hook_json(v_hook);
end;
$$;

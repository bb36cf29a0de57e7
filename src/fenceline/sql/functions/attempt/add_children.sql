-- Keeps jobs that a live attempt wants to make. They come to be in the transaction that ends the attempt well, as
-- children of its job; an attempt that fails leaves none.
--
-- p_args      one JSON object per child; options, defaults and kind are the same for all of one call
-- p_request_id  of this call: sent again because the reply was lost, it changes nothing
-- p_options   with what the token of its runner is bound to (`bound_lanes`, `bound_kinds`), if to anything: judged now
-- Returns the children's ids. Raises FL012, FL043, FL071 (an identity that is not for the role and tenant of a runner's token;
-- what a worker's handler names is its own affair), and as enqueue does for what can be told already.
-- roles: worker
create or replace function fenceline.add_children(
  p_job_id bigint,
  p_attempt_id uuid,
  p_kind text,
  p_args json[],
  p_options json default '{}',
  p_defaults json default null,
  p_request_id uuid default gen_random_uuid()
) returns bigint[]
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_options jsonb := fenceline.to_jsonb_checked('options', coalesce(p_options, '{}'));
  v_tenant text := (select j.tenant from fenceline.job j where j.id = p_job_id);
  v_ids bigint[];
  v_most integer := (select s.max_args_bytes from fenceline.setting s);
  v_bad integer;
  v_asked fenceline.job;
begin
  perform fenceline.check_name('kind', p_kind);
  perform fenceline.check_outside_kind(p_kind);
  if p_defaults is not null then
    perform fenceline.check_defaults(p_kind, p_defaults);
  end if;
  if jsonb_typeof(v_options) <> 'object' then
    raise exception using errcode = 'FL007', message = 'options must be a JSON object';
  end if;
  if coalesce(v_options ->> 'tenant', v_tenant) <> v_tenant then
    raise exception using errcode = 'FL007',
      message = format('a child belongs to the tenant of its parent, %L, not to %L', v_tenant, v_options ->> 'tenant');
  end if;
  v_options := v_options || jsonb_build_object('tenant', v_tenant, 'parent', fenceline.public_id(p_job_id));
  v_asked := fenceline.read_options(p_kind, v_options);
  if v_options ? 'actor_role' then
    perform fenceline.check_identity(p_kind, v_asked.identity, v_tenant, v_options ->> 'actor_role',
                                     (select k.identities from fenceline.kind k where k.name = p_kind));
  end if;
  if v_options ?| array['bound_lanes', 'bound_kinds'] then
    perform fenceline.check_binding(
      p_kind,
      coalesce(v_asked.lane, (select k.lane from fenceline.kind k where k.name = p_kind), p_defaults ->> 'lane',
               (select k.default_lane from fenceline.kind k where k.name = p_kind), 'default'),
      v_options -> 'bound_kinds', v_options -> 'bound_lanes');
    v_options := v_options - array['bound_lanes', 'bound_kinds'];  -- the end of the attempt is not refused for it
  end if;
  if v_asked.lane is not null and not exists (select 1 from fenceline.lane n where n.name = v_asked.lane) then
    perform fenceline.create_decorated_lane(v_asked.lane, false);
  end if;
  select n into v_bad from unnest(p_args) with ordinality a(args, n)
  where a.args is null or json_typeof(a.args) <> 'object' or octet_length(a.args::text) > v_most limit 1;
  if v_bad is not null then
    raise exception using errcode = case when octet_length(p_args[v_bad]::text) > v_most then 'FL005' else 'FL007' end,
      message = format('args of child %s (kind %L) must be a JSON object of at most %s bytes', v_bad, p_kind, v_most);
  end if;
  perform fenceline.to_jsonb_checked(format('args of a child (kind %L)', p_kind), a) from unnest(p_args) a
  where fenceline.is_suspicious(a::text);

  perform fenceline.live_attempt(p_job_id, p_attempt_id);
  select c.ids into v_ids from fenceline.child c
  where c.job_id = p_job_id and c.attempt_id = p_attempt_id and c.request_id = p_request_id;
  if found then
    return v_ids;
  end if;
  update fenceline.running r set uses = coalesce(r.uses, 0) | 64 /* children */
  where r.job_id = p_job_id and coalesce(r.uses, 0) & 64 /* children */ = 0;
  v_ids := array(select fenceline.next_id() from unnest(p_args));
  insert into fenceline.child (job_id, attempt_id, position, request_id, kind, ids, args, options, defaults)
  select p_job_id, p_attempt_id, coalesce(max(c.position), 0) + 1, p_request_id, p_kind, v_ids, p_args, v_options::json, p_defaults
  from fenceline.child c where c.job_id = p_job_id and c.attempt_id = p_attempt_id;
  return v_ids;
end;
$$;

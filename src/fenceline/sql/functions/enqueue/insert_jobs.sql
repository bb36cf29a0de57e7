-- Makes jobs of one kind with the same options: the core of enqueue, enqueue_many, enqueue_jobs and retry_job.
--
-- Jobs without a gate take two inserts (job, ready), however many they are; those that use a gate or a key are made by
-- insert_gated_jobs. Locks: none, but for the unique rows that dedupe, idempotency and resource_lock insert.
-- p_ids: ids that were given out before (add_children); null: new ones.
-- p_each: all options of each job (enqueue_each); they differ from p_options in nothing that concerns the route.
-- roles: none
create or replace function fenceline.insert_jobs(
  p_kind text,
  p_args json[],
  p_options json,
  p_actor text,
  p_defaults json,
  p_origin text,
  p_ids bigint[] default null,
  p_each jsonb[] default null,
  out job_ids bigint[],
  out created boolean[]
)
language plpgsql as $$
declare
  v_job fenceline.job;
  v_options jsonb;
  v_plain boolean := p_options is null or p_options::text = '{}';
  v_route record;
  v_count integer := coalesce(cardinality(p_args), 0);
  v_sequence bigint;
  v_base bigint;
  v_earlier bigint;
  v_jobs fenceline.job[] := '{}';
begin
  if p_defaults is not null then
    perform fenceline.check_defaults(p_kind, p_defaults);
  end if;
  perform fenceline.check_name('kind', p_kind);
  if p_origin is null or p_origin not in ('outside', 'child', 'schedule') then
    raise exception using errcode = 'FL007',
      message = format('origin %L is unknown: use outside, child or schedule', p_origin);
  end if;
  if p_origin = 'outside' then
    perform fenceline.check_outside_kind(p_kind);
  end if;
  perform fenceline.to_jsonb_checked(format('args of kind %L', p_kind), a) from unnest(p_args) a
  where fenceline.is_suspicious(a::text);
  if not v_plain then
    v_options := fenceline.to_jsonb_checked(format('options of kind %L', p_kind), p_options);
    v_job := fenceline.read_options(p_kind, v_options);
    v_plain := not fenceline.is_gated(v_job);
  end if;
  v_plain := v_plain and p_each is null;

  select s.draining, k.identities,
         (n.needs_approval or k.needs_approval or (p_defaults ->> 'needs_approval')::boolean
          or (v_job.lane is not null and fenceline.demands_approval(p_kind, p_defaults ->> 'lane')))
           and not starts_with(p_kind, 'fenceline.') as needs_approval,
         s.limits_tenants and p_origin = 'outside' as limited, s.max_args_bytes,
         coalesce(v_job.lane, k.lane, p_defaults ->> 'lane', k.default_lane, 'default') as lane,
         n.name as known_lane, coalesce(n.delivery, v_job.delivery) as delivery, n.ageing_seconds, nullif(n.fair, false) as fair,
         coalesce(v_job.priority, (p_defaults ->> 'priority')::smallint, k.priority, n.default_priority, 0::smallint)
           as priority,
         coalesce(v_job.max_attempts, (p_defaults ->> 'max_attempts')::smallint, k.max_attempts, 3::smallint)
           as max_attempts,
         coalesce(v_job.timeout_seconds, (p_defaults ->> 'timeout')::double precision, k.timeout_seconds) as timeout,
         coalesce(v_job.retry, nullif((p_defaults -> 'retry')::jsonb, 'null')) as retry
    into v_route
  from fenceline.setting s
  left join fenceline.kind k on k.name = p_kind
  left join fenceline.lane n
    on n.name = coalesce(v_job.lane, k.lane, p_defaults ->> 'lane', k.default_lane, 'default');
  if v_route.draining and p_origin = 'outside' then
    raise exception using errcode = 'FL014',
      message = 'the system is draining: no new jobs are accepted until an operator resumes it';
  end if;
  if v_route.known_lane is null then
    -- A lane that was not asked for is a decorator's word, now or when its worker started.
    perform fenceline.create_decorated_lane(v_route.lane, v_job.lane is null);
  end if;
  if v_options ?| array['bound_lanes', 'bound_kinds'] then
    perform fenceline.check_binding(p_kind, v_route.lane, v_options -> 'bound_kinds', v_options -> 'bound_lanes');
  end if;
  if v_route.needs_approval then
    if v_options is null then
      v_options := '{}';
      v_job := fenceline.read_options(p_kind, v_options);
    end if;
    v_job.needs_approval := true;
    v_plain := false;
  end if;
  -- What a handler names is its own affair, and what is run again was looked at before.
  if v_job.identity is not null and p_origin <> 'child' and not exists (
    select 1 from fenceline.job j where j.id = v_job.retry_of and j.kind = p_kind and j.identity = v_job.identity
  ) then
    perform fenceline.check_identity(p_kind, v_job.identity, v_job.tenant, v_options ->> 'actor_role', v_route.identities);
  end if;
  if v_route.max_attempts < 1 then
    raise exception using errcode = 'FL004',
      message = format('max_attempts %s is out of range: use 1 to 1000', v_route.max_attempts);
  end if;
  if v_route.retry is not null then
    perform fenceline.retry_delay(v_route.retry, 1);
  end if;
  for v_i in 1 .. v_count loop
    if p_args[v_i] is null or json_typeof(p_args[v_i]) <> 'object' then
      raise exception using errcode = 'FL007',
        message = format('args of kind %L must be a JSON object, not %s', p_kind,
                         coalesce(json_typeof(p_args[v_i]), 'nothing'));
    elsif octet_length(p_args[v_i]::text) > v_route.max_args_bytes then
      raise exception using errcode = 'FL005',
        message = format('args of kind %L have %s bytes: at most %s are allowed', p_kind,
                         octet_length(p_args[v_i]::text), v_route.max_args_bytes),
        hint = 'Store large data elsewhere and pass a reference.';
    end if;
  end loop;

  -- Ids of one call grow with its order, also where the 22 bits of the sequence begin anew in the middle of it.
  v_sequence := nextval('fenceline.job_id');
  v_base := fenceline.id_at(clock_timestamp()) - (v_sequence >> 22 << 22);
  if p_ids is not null then
    job_ids := p_ids;
  elsif v_count = 1 then
    job_ids := array[v_base + v_sequence];
  else
    job_ids := array(select v_base + nextval('fenceline.job_id') from generate_series(1, v_count));
  end if;

  if not v_plain then
    for v_i in 1 .. v_count loop
      if p_each is not null then
        v_options := p_each[v_i];
        v_job := fenceline.read_options(p_kind, v_options);
        v_job.needs_approval := v_job.needs_approval or v_route.needs_approval;
        if v_job.retry is not null then
          perform fenceline.retry_delay(v_job.retry, 1);
        end if;
      end if;
      v_job.kind := p_kind;
      v_job.tenant := coalesce(v_job.tenant, 'default');
      v_job.created_by := p_actor;
      v_job.lane := v_route.lane;
      v_job.priority := coalesce(v_job.priority, v_route.priority);
      v_job.max_attempts := coalesce(v_job.max_attempts, v_route.max_attempts);
      v_job.timeout_seconds := coalesce(v_job.timeout_seconds, v_route.timeout);
      v_job.retry := coalesce(v_job.retry, v_route.retry);
      v_job.delivery := v_route.delivery;
      v_job.args := p_args[v_i];
      v_job.id := job_ids[v_i];
      if v_count > 1 and p_each is null and v_options ? 'idempotency_key' then
        v_job.idempotency_key := (v_options ->> 'idempotency_key') || '#' || v_i;  -- one key per job of the call
      end if;
      v_jobs := v_jobs || v_job;
    end loop;
    select m.job_ids, m.created into job_ids, created
    from fenceline.insert_gated_jobs(v_jobs, coalesce(p_each, array_fill(v_options, array[v_count])), p_ids is not null) m;
    if v_route.limited then
      -- Only now: what its key finds is no new job, and a request that is sent again must get its answer.
      perform fenceline.check_tenant_limit(v_job.tenant, cardinality(array_positions(created, true)));
    end if;
    return;
  end if;

  if v_route.limited then
    perform fenceline.check_tenant_limit(coalesce(v_job.tenant, 'default'), v_count);
  end if;
  v_earlier := -fenceline.aged_seq(0, v_route.priority, v_route.ageing_seconds);  -- as place_jobs ranks it
  insert into fenceline.job (id, priority, max_attempts, kind, lane, tenant, args, labels, created_by, timeout_seconds,
                             identity, group_name, retry, retry_of, parent, snapshot, snapshot_hash, delivery,
                             traceparent)
  select n.id, v_route.priority, v_route.max_attempts, p_kind, v_route.lane, coalesce(v_job.tenant, 'default'), n.args,
         v_job.labels, p_actor, v_route.timeout, v_job.identity, v_job.group_name, v_route.retry, v_job.retry_of,
         v_job.parent, v_job.snapshot, v_job.snapshot_hash, v_route.delivery, v_job.traceparent
  from unnest(job_ids, p_args) n(id, args);
  if v_job.parent is not null then
    perform fenceline.note_children(v_job.parent, job_ids);
  end if;
  insert into fenceline.ready (job_id, seq, priority, lane, kind, tenant, own_priority, fair)
  select i, case when p_ids is null then i else v_base + nextval('fenceline.job_id') end - v_earlier,
         case when v_route.ageing_seconds is null then v_route.priority else 0 end, v_route.lane, p_kind,
         coalesce(v_job.tenant, 'default'), case when v_route.ageing_seconds is not null then v_route.priority end,
         v_route.fair
  from unnest(job_ids) i;
  if exists (select 1 from fenceline.waiter w where w.lane = v_route.lane) then
    perform fenceline.wake(array[v_route.lane]);
  end if;
  if exists (select 1 from fenceline.follow) then
    perform fenceline.tell_followers(job_ids);
  end if;
end;
$$;

-- Enqueues one job in the caller's transaction.
--
-- p_kind      what to do; only this is required
-- p_args      a JSON object; json, not jsonb, so that \u0000 reaches us and gets an error of ours
-- p_options   lane priority run_at run_in (seconds from now) expires_at dedupe_key dedupe_until idempotency_key max_attempts
--             labels resource_lock key key_limit needs_approval snapshot requires_hash after identity tenant timeout retry group parent actor_role;
--             autocommit (true: this call is a transaction of its own, so that an answer by dedupe key need not be
--             guarded until the commit)
-- p_actor     who enqueues it (created_by)
-- p_defaults  what the handler's decorator says: lane priority max_attempts retry timeout needs_approval; weaker than p_options and
--             than the lane that lists the kind
-- p_origin    'outside'; 'child' and 'schedule' are known too, and mean the same here
-- Returns the job's internal id (public_id shows it as people see it), and whether this call made it (false: deduplicated
-- or repeated).
-- Raises FL001–FL008, FL013, FL014, FL017, FL020, FL023, FL071; then nothing has changed.
-- roles: producer, worker
create or replace function fenceline.enqueue(
  p_kind text,
  p_args json default '{}',
  p_options json default '{}',
  p_actor text default null,
  p_defaults json default null,
  p_origin text default 'outside',
  out job_id bigint,
  out created boolean
)
language plpgsql security definer set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan as $$
declare
  v_made record;
  v_lane text;
  v_followed boolean;
begin
  -- The short way, for a job without options: one statement looks up the route and writes `job` and `ready`. A commit of
  -- its own pays for setting up every statement and expression anew, so there are as few as can be; ltrim costs a tenth
  -- of a regular expression. Where anything is not plain no row is written, and the long way says what is wrong. What
  -- jsonb might not take is left to the long way.
  if p_defaults is not null then
    perform fenceline.check_defaults(p_kind, p_defaults);
  end if;
  if p_options::text = '{}' and json_typeof(p_args) = 'object' and not fenceline.is_suspicious(p_args::text) then
    with made as (
      insert into fenceline.job as j (id, priority, max_attempts, kind, lane, tenant, args, created_by, timeout_seconds,
                                     delivery)
      select fenceline.next_id(), coalesce((p_defaults ->> 'priority')::smallint, k.priority, n.default_priority),
             coalesce((p_defaults ->> 'max_attempts')::smallint, k.max_attempts, 3::smallint), p_kind, n.name,
             'default', p_args, p_actor, coalesce((p_defaults ->> 'timeout')::double precision, k.timeout_seconds),
             n.delivery
      from fenceline.setting s
      left join fenceline.kind k on k.name = p_kind
      join fenceline.lane n on n.name = coalesce(k.lane, p_defaults ->> 'lane', k.default_lane, 'default')
      where n.ageing_seconds is null and not n.fair and not s.draining
        and not n.needs_approval and k.needs_approval is not true and p_defaults -> 'needs_approval' is null
        and p_origin in ('outside', 'child', 'schedule') and p_defaults -> 'retry' is null
        and case when s.limits_tenants then fenceline.check_tenant_limit('default', 1) else true end
        and coalesce((p_defaults ->> 'max_attempts')::smallint, k.max_attempts, 3::smallint) > 0
        and octet_length(p_args::text) <= s.max_args_bytes
        and octet_length(p_kind) between 1 and 64 and not starts_with(p_kind, 'fenceline.')
        and ltrim(p_kind, 'abcdefghijklmnopqrstuvwxyz0123456789_.-') = ''
      returning j.id, j.priority, j.lane
    ), queued as (
      insert into fenceline.ready (job_id, seq, priority, lane, kind, tenant)
      select m.id, m.id, m.priority, m.lane, p_kind, 'default' from made m
    )
    select m.id, (select w.lane from fenceline.waiter w where w.lane = m.lane limit 1),
           exists (select 1 from fenceline.follow)
      into enqueue.job_id, v_lane, v_followed
    from made m;
    if found then
      if v_lane is not null then
        perform fenceline.wake(array[v_lane]);
      end if;
      if v_followed then
        perform fenceline.tell_followers(array[enqueue.job_id]);
      end if;
      created := true;
      return;
    end if;
  end if;
  v_made := fenceline.insert_jobs(p_kind, array[p_args], p_options, p_actor, p_defaults,
                                  fenceline.public_origin(p_origin));
  job_id := v_made.job_ids[1];
  created := coalesce(v_made.created[1], true);
end;
$$;

-- Fenceline 0.1.0 as it was released, but for its migrations (0001 to 0008), which never change.
-- Test data: never edit it. Each part starts with the name of the file it was.
--- file: bootstrap.sql
-- What the migrator itself stands on, made before the first migration.

do $$
begin
  -- Not "if not exists": that asks for the right to create schemas even where an administrator has made this one.
  if to_regnamespace('fenceline') is null then
    create schema fenceline;
  end if;
end $$;

-- One row per applied migration. compatible_from: the lowest number a program must know to work on this schema.
create table fenceline.migration (
  number integer primary key,
  name text not null,
  checksum text not null,
  compatible_from integer not null,
  applied_at timestamptz not null default clock_timestamp()
);

-- The functions and views in place: the checksum of all their files and grants.
create table fenceline.code (
  one boolean primary key default true check (one),
  checksum text not null,
  applied_at timestamptz not null default clock_timestamp()
);
--- file: functions/act_on_job.sql
-- One verb on one job, for somebody bound to a tenant (null: to none) who may reach only what p_created_by enqueued (null:
-- all): the way of HTTP to the verbs. Every rule about the verb is in its own function.
--
-- p_verb      approve reject retry cancel reprioritise erase (the args) remove (cancel what is unfinished, delete what is finished)
-- Returns the job afterwards, the new one for retry; null when it was deleted. Raises what the verb raises, FL007 (verb).
-- roles: admin
create or replace function fenceline.act_on_job(
  p_job_id bigint,
  p_verb text,
  p_actor text,
  p_tenant text,
  p_created_by text default null,
  p_reason text default null,
  p_force boolean default false,
  p_priority integer default null
) returns jsonb
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_job_id bigint := fenceline.visible_job_id(p_job_id, p_tenant, p_created_by);
begin
  case p_verb
    when 'approve' then perform fenceline.approve_job(v_job_id, p_actor, p_reason, p_tenant);
    when 'reject' then perform fenceline.reject_job(v_job_id, p_actor, p_reason, p_tenant);
    when 'cancel' then perform fenceline.cancel_job(v_job_id, p_actor, p_reason, p_force, null, p_tenant);
    when 'retry' then
      select r.job_id into v_job_id from fenceline.retry_job(p_job_id, p_actor, p_tenant) r;
    when 'reprioritise' then
      perform fenceline.reprioritise_job(v_job_id, p_priority, p_actor, p_tenant);
    when 'erase' then perform fenceline.erase_args(v_job_id, p_actor, p_reason, p_tenant);
    when 'remove' then
      begin
        perform fenceline.cancel_job(v_job_id, p_actor, p_reason, p_force, null, p_tenant);
      exception when sqlstate 'FL011' then  -- finished, and so it stays
        perform fenceline.delete_job(v_job_id, p_actor, p_tenant);
        return null;
      end;
    else
      raise exception using errcode = 'FL007', message = format('verb %L is unknown', p_verb);
  end case;
  return fenceline.get_job(v_job_id);
end;
$$;
--- file: functions/act_on_schedule.sql
-- One verb on one schedule, for somebody of p_own_tenant who is bound to p_tenant (null: to none): the way of HTTP to the
-- verbs. A schedule belongs to the tenant of its jobs, and stays there.
--
-- p_verb      create, change (both with p_changes, as set_schedule takes them), delete, run
-- Returns the schedule afterwards; the job for run; null for delete.
-- Raises FL007 (verb), FL030 (missing or foreign), FL044 (exists), and what the verb raises.
-- roles: admin
create or replace function fenceline.act_on_schedule(
  p_name text,
  p_verb text,
  p_changes jsonb,
  p_actor text,
  p_tenant text,
  p_own_tenant text
) returns jsonb
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_tenant text;
  v_job_id bigint;
begin
  select coalesce(s.options ->> 'tenant', 'default') into v_tenant from fenceline.schedule s where s.name = p_name
  for update;
  if p_verb = 'create' then
    if found then
      raise exception using errcode = 'FL044', message = format('schedule %L exists already', p_name);
    end if;
    v_tenant := p_own_tenant;
  elsif not found or v_tenant <> p_tenant then
    raise exception using errcode = 'FL030', message = format('schedule %L does not exist', left(p_name, 80));
  end if;
  if p_verb = 'create' or p_changes ? 'options' then
    p_changes := p_changes || jsonb_build_object('options',
      coalesce(nullif(p_changes -> 'options', 'null'), '{}') || jsonb_build_object('tenant', v_tenant));
  end if;
  case p_verb
    when 'create' then return fenceline.set_schedule(p_name, p_changes, p_actor, true);
    when 'change' then return fenceline.set_schedule(p_name, p_changes, p_actor, false);
    when 'delete' then
      perform fenceline.delete_schedule(p_name, p_actor);
      return null;
    when 'run' then
      select r.job_id into v_job_id from fenceline.run_schedule(p_name, p_actor) r;
      return fenceline.get_job(v_job_id);
    else
      raise exception using errcode = 'FL007', message = format('verb %L is unknown', p_verb);
  end case;
end;
$$;
--- file: functions/add_children.sql
-- Keeps jobs that a live attempt wants to make. They come to be in the transaction that ends the attempt well, as
-- children of its job; an attempt that fails leaves none.
--
-- p_args      one JSON object per child; options, defaults and kind are the same for all of one call
-- p_request_id  of this call: sent again because the reply was lost, it changes nothing
-- Returns the children's ids. Raises FL012, and as enqueue does for what can be told already.
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
  update fenceline.running r set uses = coalesce(r.uses, 0) | 64
  where r.job_id = p_job_id and coalesce(r.uses, 0) & 64 = 0;
  v_ids := array(select fenceline.next_id() from unnest(p_args));
  insert into fenceline.child (job_id, attempt_id, position, request_id, kind, ids, args, options, defaults)
  select p_job_id, p_attempt_id, coalesce(max(c.position), 0) + 1, p_request_id, p_kind, v_ids, p_args, v_options::json, p_defaults
  from fenceline.child c where c.job_id = p_job_id and c.attempt_id = p_attempt_id;
  return v_ids;
end;
$$;
--- file: functions/admit_keys.sql
-- Lets parked jobs through whose key has room, in order, and hands them to `ready`.
--
-- p_since     look only at requests since this id. A claim looks at the last seconds, so that it does not scan dead
--             entries while something pins vacuum; the resolver looks at all.
-- A key's limit is exact: admissions of one key queue up behind a lock of that key, then count. Keys are locked in
-- order, so that two admissions cannot wait for each other. Returns how many jobs were admitted.
-- roles: none
create or replace function fenceline.admit_keys(p_since bigint default 0, p_limit integer default 1000) returns integer
language plpgsql as $$
declare
  v_keys record;
  v_head record;
  v_used integer;
  v_taken integer;
  v_admitted fenceline.live[] := '{}';
  v_count integer := 0;
begin
  for v_keys in
    with asked as (
      delete from fenceline.key_check where id = any(array(
        select c.id from fenceline.key_check c where c.id >= p_since order by c.id limit p_limit
        for update skip locked))
      returning tenant, key
    )
    select d.tenant, d.key from (select distinct a.tenant, a.key from asked a) d
    order by fenceline.key_lock(d.tenant, d.key)
  loop
    perform pg_advisory_xact_lock(1179926086, fenceline.key_lock(v_keys.tenant, v_keys.key));
    v_taken := 0;
    select count(*) into v_used from fenceline.key_holder h
    where h.tenant = v_keys.tenant and h.key = v_keys.key;
    for v_head in
      select h.job_id, j.key_limit,
             row(h.job_id, fenceline.next_id(), h.priority, h.lane, h.kind, h.tenant, h.number, h.token, h.deaths,
                 (h.uses & ~4) | 8, h.run_at)::fenceline.live as live
      from fenceline.held h join fenceline.job j on j.id = h.job_id
      where h.waiting_for = 'key' and h.tenant = v_keys.tenant and h.key = v_keys.key
      order by h.priority desc, h.seq
      limit 500  -- so that the planner takes the index, whatever it believes about the parked
      for update of h
    loop
      exit when v_used >= v_head.key_limit;
      v_used := v_used + 1;
      v_taken := v_taken + 1;
      insert into fenceline.key_holder (tenant, key, job_id) values (v_keys.tenant, v_keys.key, v_head.job_id);
      v_admitted := v_admitted || v_head.live;
    end loop;
    if v_taken = 500 then
      insert into fenceline.key_check (id, tenant, key) values (fenceline.next_id(), v_keys.tenant, v_keys.key);
    end if;
  end loop;
  v_count := cardinality(v_admitted);
  if v_count > 0 then
    delete from fenceline.held where job_id = any(array(select l.job_id from unnest(v_admitted) l));
    perform fenceline.place_jobs(v_admitted);
  end if;
  return v_count;
end;
$$;
--- file: functions/advance_waiters.sql
-- Takes ended jobs off the lists of those that wait for them: one sorted decrement per waiter and call. A waiter with
-- nothing left to wait for goes on to its next gate. Returns the waiters that ended because they can no longer run,
-- or null.
-- roles: none
create or replace function fenceline.advance_waiters(p_ended bigint[]) returns bigint[]
language plpgsql as $$
declare
  v_waiter record;
  v_advance fenceline.live[];
  v_buried bigint[];
  v_ids bigint[];
  v_counts integer[];
  v_failed bigint[];
begin
  with gone as (
    delete from fenceline.dependency d where d.after_id = any(p_ended) returning d.waiter_id, d.after_id
  ), counted as (
    select g.waiter_id, count(*)::integer as n,
           -- No outcome: it ended and was deleted before this list became visible (verify_dependencies).
           min(g.after_id) filter (where coalesce(h.outcome, '') not in ('succeeded', 'succeeded_with_errors')) as failed
    from gone g left join fenceline.history h on h.job_id = g.after_id and h.final
    group by g.waiter_id
  )
  select array_agg(waiter_id order by waiter_id), array_agg(n order by waiter_id),
         array_agg(failed order by waiter_id)
    into v_ids, v_counts, v_failed
  from counted;
  if v_ids is null then
    return null;
  end if;

  -- Sorted: two finishers that free the same waiters never wait for each other in a circle.
  for v_waiter in
    select h.job_id, h.waiting_for, h.pending - c.n as left_to_wait, c.failed, j.after_policy,
           row(h.job_id, h.seq, h.priority, h.lane, h.kind, h.tenant, h.number, h.token, h.deaths, h.uses,
               h.run_at)::fenceline.live as live
    from unnest(v_ids, v_counts, v_failed) c(waiter_id, n, failed)
    join fenceline.held h on h.job_id = c.waiter_id
    join fenceline.job j on j.id = c.waiter_id
    order by c.waiter_id
    for update of h
  loop
    if v_waiter.failed is not null and v_waiter.after_policy = 'success' then
      v_buried := v_buried || fenceline.bury_waiting(
        array[v_waiter.job_id], 'cancelled', fenceline.dependency_error(v_waiter.failed), null);
    elsif v_waiter.left_to_wait = 0 and v_waiter.waiting_for = 'dependencies' then
      v_advance := v_advance || v_waiter.live;
    else
      update fenceline.held set pending = v_waiter.left_to_wait where job_id = v_waiter.job_id;
    end if;
  end loop;
  if v_advance is not null then
    perform fenceline.release_held(v_advance);
  end if;
  return v_buried;
end;
$$;
--- file: functions/after_list.sql
-- The jobs in an "after" option: a list, or an object {"jobs": […], "group": name, "policy": "success" | "always"}.
-- roles: none
create or replace function fenceline.after_list(p_after jsonb) returns jsonb
language sql immutable parallel safe as $$
  select case jsonb_typeof(p_after)
           when 'array' then p_after
           when 'object' then case when jsonb_typeof(p_after -> 'jobs') = 'array' then p_after -> 'jobs' else '[]' end
           when 'string' then jsonb_build_array(p_after)
           when 'number' then jsonb_build_array(p_after)
           else '[]' end;
$$;
--- file: functions/aged_seq.sql
-- The rank of a job in a lane where priority grows by one every p_ageing_seconds: its seq, earlier by priority × ageing.
-- roles: none
create or replace function fenceline.aged_seq(p_seq bigint, p_priority integer, p_ageing_seconds integer)
returns bigint
language sql immutable parallel safe as $$
  select p_seq - ((p_priority::bigint * coalesce(p_ageing_seconds, 0) * 1000) << 22);
$$;
--- file: functions/approve_job.sql
-- Approves a job that awaits approval; it goes on to its next gate. Returns its status afterwards.
-- Raises FL010, FL011.
-- roles: admin
create or replace function fenceline.approve_job(
  p_job_id bigint,
  p_actor text default null,
  p_reason text default null,
  p_tenant text default null
) returns text
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_job fenceline.job := fenceline.find_job(p_job_id, p_tenant);
  v_held fenceline.held;
  v_after text;
begin
  select * into v_held from fenceline.held h where h.job_id = p_job_id and h.waiting_for = 'approval' for update;
  if not found then
    perform fenceline.wrong_status(p_job_id, 'approved', 'awaiting_approval');
  end if;
  if v_held.pending > 0 then
    update fenceline.held set waiting_for = 'dependencies' where job_id = p_job_id;
    perform fenceline.tell_followers(array[p_job_id]);
  else
    perform fenceline.release_held(array[row(
      v_held.job_id, v_held.seq, v_held.priority, v_held.lane, v_held.kind, v_held.tenant, v_held.number, v_held.token,
      v_held.deaths, v_held.uses, v_held.run_at)::fenceline.live]);
  end if;
  v_after := fenceline.job_status(p_job_id);
  perform fenceline.record_event(p_actor, 'job.approve', fenceline.public_id(p_job_id), v_job.tenant, p_reason,
    '{"status": "awaiting_approval"}', jsonb_build_object('status', v_after));
  return v_after;
end;
$$;
--- file: functions/await_jobs.sql
-- Notes that a runner waits for jobs of some lanes, so that enqueue notifies its server (channel fenceline_ready).
-- p_lanes     null: those it registered with, or all
-- Returns the lanes. Raises as own_runner.
-- roles: worker
create or replace function fenceline.await_jobs(
  p_runner_id integer,
  p_owner text,
  p_lanes text[],
  p_wait_seconds double precision
) returns text[]
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_lanes text[];
begin
  v_lanes := array(
    select n.name
    from fenceline.worker w
    join fenceline.lane n on coalesce(p_lanes, w.lanes) is null or n.name = any(coalesce(p_lanes, w.lanes))
    where w.id = fenceline.own_runner(p_runner_id, p_owner)
    order by n.name);
  perform fenceline.start_waiting(p_runner_id, n, p_wait_seconds, fenceline.clock()) from unnest(v_lanes) n;
  return v_lanes;
end;
$$;
--- file: functions/bootstrap_token.sql
-- The first token of all, for platform_admin. Returns false, and does nothing, when there has ever been another.
-- Locks the table, so that of two servers that start together one does it.
-- roles: admin
create or replace function fenceline.bootstrap_token(p_hash bytea) returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  lock table fenceline.token in share row exclusive mode;
  if exists (select 1 from fenceline.token) then
    return false;
  end if;
  perform fenceline.create_token(p_hash, 'platform_admin', null, 'bootstrap', null, 'bootstrap');
  return true;
end;
$$;
--- file: functions/bulk_jobs.sql
-- One verb on many jobs: those of a list, or one page of those that a filter finds. Each is its own little transaction:
-- what one refuses does not stop the others.
--
-- p_verb, p_actor, p_tenant, p_created_by, p_reason, p_force, p_priority   as in act_on_job
-- p_dry_run   do it all, count, and undo it: what it would say is what it says
-- p_job_ids   the jobs; null: those that p_statuses … p_created_before find (as in list_jobs), below p_cursor
-- Returns how many there were, how many were changed, how many were refused by SQLSTATE, and the cursor of the next page
-- (null: there is none). Raises FL007 (verb, status).
-- roles: admin
create or replace function fenceline.bulk_jobs(
  p_verb text,
  p_actor text,
  p_tenant text,
  p_created_by text,
  p_reason text,
  p_force boolean,
  p_priority integer,
  p_dry_run boolean,
  p_job_ids bigint[],
  p_statuses text[] default null,
  p_kinds text[] default null,
  p_lanes text[] default null,
  p_tenants text[] default null,
  p_labels jsonb default null,
  p_created_after timestamptz default null,
  p_created_before timestamptz default null,
  p_limit integer default 200,
  p_cursor bigint default null,
  out matched integer,
  out changed integer,
  out refused jsonb,
  out next_cursor bigint
)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_job_id bigint;
begin
  if p_verb is null or p_verb not in ('cancel', 'retry', 'approve', 'reject', 'reprioritise') then
    raise exception using errcode = 'FL007', message = format('verb %L is unknown', p_verb);
  end if;
  if p_job_ids is null then
    perform fenceline.check_statuses(p_statuses);
    select f.job_ids, f.next_cursor into p_job_ids, next_cursor
    from fenceline.find_jobs(p_statuses, p_kinds, p_lanes, p_tenants, p_labels, p_created_after, p_created_before,
                             p_created_by, p_limit, p_cursor) f;
  end if;
  matched := cardinality(p_job_ids);
  changed := 0;
  refused := '{}';
  begin
    for v_job_id in select i from unnest(p_job_ids) i order by i loop
      begin
        perform fenceline.act_on_job(v_job_id, p_verb, p_actor, p_tenant, p_created_by, p_reason, p_force, p_priority);
        changed := changed + 1;
      exception when sqlstate 'FL010' or sqlstate 'FL011' or sqlstate 'FL013' or sqlstate 'FL023' then
        -- gone, wrong status, locked, too many
        refused := refused || jsonb_build_object(sqlstate, coalesce((refused ->> sqlstate)::integer, 0) + 1);
      end;
    end loop;
    if p_dry_run then
      raise exception using errcode = 'FLDRY', message = 'a dry run is undone';
    end if;
  exception when sqlstate 'FLDRY' then null;  -- the rows are as before; the counts stay
  end;
end;
$$;
--- file: functions/bury_waiting.sql
-- The first half of end_waiting: removes the live rows and writes the final ones; returns the ids, or null for none.
-- roles: none
create or replace function fenceline.bury_waiting(p_job_ids bigint[], p_outcome text, p_error jsonb, p_actor text)
returns bigint[]
language plpgsql as $$
declare
  v_ended bigint[];
begin
  with r as (delete from fenceline.ready where job_id = any(p_job_ids) returning job_id, number),
       t as (delete from fenceline.timer where job_id = any(p_job_ids) returning job_id, number),
       h as (delete from fenceline.held where job_id = any(p_job_ids) returning job_id, number),
       gone as (select * from r union all select * from t union all select * from h),
       written as (
         insert into fenceline.history (job_id, ended_at, number, final, outcome, error, actor)
         select g.job_id, fenceline.clock(), g.number, true, p_outcome, p_error, p_actor from gone g
         returning job_id)
  select array_agg(job_id) into v_ended from written;
  if v_ended is not null then
    delete from fenceline.dedupe d using fenceline.job j
    where j.id = any(v_ended) and j.dedupe_key is not null
      and d.tenant = j.tenant and d.key = j.dedupe_key and d.job_id = j.id;
  end if;
  return v_ended;
end;
$$;
--- file: functions/cancel_job.sql
-- Cancels a job. Unclaimed: it ends now. Running: the handler is asked to stop, keeps its fence for the grace period,
-- and then (or at once with p_force) the fence is rotated and the job ends.
--
-- p_grace_seconds   null: the setting cancel_grace_seconds
-- Returns the job's status afterwards. A job that is being cancelled already is left as it is, unless forced.
-- Raises FL007 (grace), FL010, FL011 (finished).
-- roles: producer, worker
create or replace function fenceline.cancel_job(
  p_job_id bigint,
  p_actor text default null,
  p_reason text default null,
  p_force boolean default false,
  p_grace_seconds double precision default null,
  p_tenant text default null
) returns text
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_now timestamptz := fenceline.clock();
  v_job fenceline.job := fenceline.find_job(p_job_id, p_tenant);
  v_before text;
  v_after text;
  v_run fenceline.running;
begin
  if p_grace_seconds not between 0 and 1e9 then
    raise exception using errcode = 'FL007',
      message = format('grace of %s seconds is out of range: use 0 to 1000000000', p_grace_seconds);
  end if;
  -- The job may move while we look; it is always somewhere, so look until it is caught.
  loop
    v_before := fenceline.job_status(p_job_id);
    if cardinality(fenceline.end_waiting(array[p_job_id], 'cancelled', fenceline.cancelled_error(p_reason), p_actor))
       > 0 then
      exit;
    end if;
    if p_force then
      delete from fenceline.running r where r.job_id = p_job_id returning * into v_run;
      if found then
        v_run.cancel_actor := coalesce(v_run.cancel_actor, p_actor);
        perform fenceline.end_attempt(v_run, 'cancelled', p_error => fenceline.cancelled_error(p_reason),
                                      p_actor => p_actor);
        perform fenceline.settle(array[p_job_id], v_run.uses);
        perform pg_notify('fenceline_cancel', v_run.worker_id || '/' || v_run.attempt_id);
        exit;
      end if;
    else
      update fenceline.running r
      set cancel_requested_at = coalesce(r.cancel_requested_at, v_now),
          cancel_deadline = coalesce(r.cancel_deadline, v_now + make_interval(secs => coalesce(p_grace_seconds,
            (select s.cancel_grace_seconds from fenceline.setting s)))),
          cancel_actor = coalesce(r.cancel_actor, p_actor), cancel_reason = coalesce(r.cancel_reason, p_reason)
      where r.job_id = p_job_id
      returning * into v_run;
      if found then
        perform pg_notify('fenceline_cancel', v_run.worker_id || '/' || v_run.attempt_id);
        perform fenceline.tell_followers(array[p_job_id]);
        exit;
      end if;
    end if;
    if exists (select 1 from fenceline.history h where h.job_id = p_job_id and h.final) then
      perform fenceline.wrong_status(p_job_id, 'cancelled', 'unfinished');
    end if;
    perform fenceline.find_job(p_job_id, p_tenant);  -- it may have been deleted meanwhile
  end loop;
  v_after := fenceline.job_status(p_job_id);
  perform fenceline.record_event(p_actor, case when p_force then 'job.kill' else 'job.cancel' end,
    fenceline.public_id(p_job_id), v_job.tenant, p_reason, jsonb_build_object('status', v_before),
    jsonb_build_object('status', v_after));
  return v_after;
end;
$$;
--- file: functions/cancelled_error.sql
-- The error of a cancelled job.
-- roles: none
create or replace function fenceline.cancelled_error(p_reason text) returns jsonb
language sql immutable parallel safe as $$
  select jsonb_build_object('code', 'cancelled', 'message', coalesce(p_reason, 'cancelled'));
$$;
--- file: functions/canonical_json.sql
-- JSON in one fixed spelling: keys in code point order, no white space, numbers without trailing zeros.
-- roles: none
create or replace function fenceline.canonical_json(p_value jsonb) returns text
language sql immutable strict parallel safe as $$
  select case jsonb_typeof(p_value)
    when 'object' then '{' || coalesce((
      select string_agg(to_json(e.key)::text || ':' || fenceline.canonical_json(e.value), ',' order by e.key collate "C")
      from jsonb_each(p_value) e), '') || '}'
    when 'array' then '[' || coalesce((
      select string_agg(fenceline.canonical_json(e.value), ',' order by e.ordinality)
      from jsonb_array_elements(p_value) with ordinality e(value, ordinality)), '') || ']'
    when 'number' then trim_scale((p_value #>> '{}')::numeric)::text
    else p_value::text end;
$$;
--- file: functions/check_after.sql
-- Raises FL007 unless an "after" option has one of the shapes that after_list knows.
-- roles: none
create or replace function fenceline.check_after(p_after jsonb) returns void
language plpgsql immutable as $$
begin
  if jsonb_typeof(p_after) not in ('array', 'object', 'string', 'number')
     or (jsonb_typeof(p_after) = 'object'
         and (p_after - array['jobs', 'group', 'policy'] <> '{}'
              or coalesce(jsonb_typeof(p_after -> 'jobs'), 'null') not in ('array', 'null')
              or coalesce(jsonb_typeof(p_after -> 'group'), 'null') not in ('string', 'null')
              or num_nonnulls(p_after ->> 'jobs', p_after ->> 'group') = 0)) then
    raise exception using errcode = 'FL007',
      message = format('after %s is not valid: use a list of job ids, or an object with "jobs" (a list), "group" (a name) '
                       'and "policy"', left(p_after::text, 200));
  end if;
end;
$$;
--- file: functions/check_defaults.sql
-- Raises FL003, FL004 or FL007 unless what a decorator says (p_defaults of enqueue) can be read: its numbers are cast
-- without a further look. The lane's name is checked where the lane is made.
-- roles: none
create or replace function fenceline.check_defaults(p_kind text, p_defaults json) returns void
language plpgsql immutable as $$
begin
  if json_typeof(p_defaults) not in ('object', 'null') then
    raise exception using errcode = 'FL007', message = format('defaults of kind %L must be a JSON object', p_kind);
  end if;
  if p_defaults ->> 'priority' is not null then
    perform fenceline.read_integer(p_defaults::jsonb, 'priority', -32768, 32767, 'FL003');
  end if;
  if p_defaults ->> 'max_attempts' is not null then
    perform fenceline.read_integer(p_defaults::jsonb, 'max_attempts', 1, 1000, 'FL004');
  end if;
  if p_defaults ->> 'timeout' is not null then
    perform fenceline.read_seconds(p_defaults::jsonb, 'timeout');
  end if;
end;
$$;
--- file: functions/check_grant.sql
-- Raises FL043 unless somebody with p_permissions, bound to p_tenant (null: to none), may hand out these permissions in
-- that tenant: nobody gives away what he does not have himself.
-- p_permissions   null: whoever may write to the database itself
-- roles: none
create or replace function fenceline.check_grant(p_permissions text[], p_tenant text, p_given text[], p_given_tenant text)
returns void
language plpgsql immutable as $$
begin
  if p_tenant is not null and p_given_tenant is distinct from p_tenant then
    raise exception using errcode = 'FL043',
      message = format('tenant %L is not yours to hand out tokens in', p_given_tenant);
  end if;
  if p_permissions is not null and not '*' = any(p_permissions) and not p_given <@ p_permissions then
    raise exception using errcode = 'FL043',
      message = format('the permissions %s are not yours to give', array_to_string(
        array(select g from unnest(p_given) g where g <> all(p_permissions)), ', '));
  end if;
end;
$$;
--- file: functions/check_name.sql
-- Raises FL002 unless the value is a name as kinds, lanes, tenants and roles have them.
-- roles: none
create or replace function fenceline.check_name(p_what text, p_value text) returns void
language plpgsql immutable as $$
begin
  if p_value is null or p_value !~ '^[a-z0-9_.-]{1,64}$' then
    raise exception using errcode = 'FL002',
      message = format('%s %s is not a valid name: use 1 to 64 of a-z, 0-9, "_", "." and "-"',
                       p_what, coalesce(quote_literal(left(p_value, 80)), 'null'));
  end if;
end;
$$;
--- file: functions/check_outcomes.sql
-- Raises FL007 for an outcome that finish_attempts does not know and for seconds out of range, FL005 for a result or a
-- list of errors over the limit.
-- roles: none
create or replace function fenceline.check_outcomes(
  p_outcomes text[],
  p_results jsonb[],
  p_error_lists jsonb[],
  p_delays double precision[],
  p_ran_seconds double precision[]
) returns void
language plpgsql stable as $$
declare
  v_bad text;
  v_most integer;
begin
  if p_outcomes is not null then
    select o into v_bad from unnest(p_outcomes) o
    where o <> all (array['succeeded', 'succeeded_with_errors', 'failed', 'failed_for_good', 'cancelled', 'snoozed',
                          'released']) limit 1;
    if v_bad is not null then
      raise exception using errcode = 'FL007',
        message = format('outcome %L is unknown: use succeeded, succeeded_with_errors, failed, failed_for_good, '
                         'cancelled, snoozed or released', v_bad);
    end if;
  end if;
  if p_delays is not null or p_ran_seconds is not null then
    select s into v_bad from unnest(p_delays || p_ran_seconds) s where s not between 0 and 1e9 limit 1;
    if v_bad is not null then
      raise exception using errcode = 'FL007',
        message = format('a delay or duration of %s seconds is out of range: use 0 to 1000000000', v_bad);
    end if;
  end if;
  if p_results is not null or p_error_lists is not null then
    select s.max_result_bytes into v_most from fenceline.setting s;
    select pg_column_size(r)::text into v_bad from unnest(p_results || p_error_lists) r
    where pg_column_size(r) > v_most limit 1;
    if v_bad is not null then
      raise exception using errcode = 'FL005',
        message = format('a result has %s bytes: at most %s are allowed', v_bad, v_most),
        hint = 'Store large data elsewhere and return a reference.';
    end if;
  end if;
end;
$$;
--- file: functions/check_retention.sql
-- Raises FL007 unless a kind's retention is an object of statuses and seconds: prune must be able to read every one.
-- roles: none
create or replace function fenceline.check_retention(p_kind text, p_retention jsonb) returns void
language plpgsql immutable as $$
begin
  if p_retention is null then
    return;
  end if;
  if jsonb_typeof(p_retention) <> 'object'
     or p_retention - array['succeeded', 'succeeded_with_errors', 'failed', 'cancelled'] <> '{}'
     or jsonb_path_exists(p_retention, 'strict $.* ? (@.type() != "number" || @ < 0 || @ > 10000000000)') then
    raise exception using errcode = 'FL007',
      message = format('retention %s of kind %L is not valid: use an object with seconds for succeeded, '
                       'succeeded_with_errors, failed and cancelled', left(p_retention::text, 200), p_kind);
  end if;
end;
$$;
--- file: functions/check_role_owner.sql
-- Raises FL043 unless somebody with these permissions may change roles. Roles belong to all tenants, so that takes one who
-- crosses tenants; null: whoever may write to the database itself.
-- roles: none
create or replace function fenceline.check_role_owner(p_permissions text[]) returns void
language plpgsql immutable as $$
begin
  if p_permissions is not null and not '*' = any(p_permissions) then
    raise exception using errcode = 'FL043', message = 'roles belong to all tenants: only platform_admin changes them';
  end if;
end;
$$;
--- file: functions/check_size.sql
-- Raises FL005 for a value over the limit for results.
-- roles: none
create or replace function fenceline.check_size(p_what text, p_value jsonb) returns void
language plpgsql stable as $$
declare
  v_most integer := (select s.max_result_bytes from fenceline.setting s);
begin
  if pg_column_size(p_value) > v_most then
    raise exception using errcode = 'FL005',
      message = format('%s has %s bytes: at most %s are allowed', p_what, pg_column_size(p_value), v_most),
      hint = 'Store large data elsewhere and keep a reference.';
  end if;
end;
$$;
--- file: functions/check_statuses.sql
-- Raises FL007 unless every value is a status.
-- roles: none
create or replace function fenceline.check_statuses(p_statuses text[]) returns void
language plpgsql immutable as $$
declare
  v_bad text;
begin
  select coalesce(s, 'null') into v_bad from unnest(p_statuses) s
  where s is null
     or s <> all (array['awaiting_approval', 'waiting', 'scheduled', 'queued', 'claimed', 'running', 'succeeded',
                        'succeeded_with_errors', 'failed', 'cancelled']) limit 1;
  if v_bad is not null then
    raise exception using errcode = 'FL007', message = format('status %L is unknown', v_bad);
  end if;
end;
$$;
--- file: functions/check_step_name.sql
-- Raises FL007 unless a text can name a step: 1 to 200 characters.
-- roles: none
create or replace function fenceline.check_step_name(p_name text) returns void
language plpgsql immutable as $$
begin
  if p_name is null or length(p_name) not between 1 and 200 then
    raise exception using errcode = 'FL007',
      message = format('step name %L is not valid: use 1 to 200 characters', left(p_name, 80));
  end if;
end;
$$;
--- file: functions/check_tenant_limit.sql
-- Refuses jobs from outside that would give a tenant more unfinished ones than an operator allows. Called only where
-- setting.limits_tenants says that there is a limit; children, schedules and what is there already are let through.
--
-- p_more      so many jobs are about to be made
-- Two probes, whatever the queue holds: the counting is maintenance's (count_tenants). So a limit is soft by what is
-- enqueued between two counts. Where no worker and no server does the maintenance, an enqueue counts every ten seconds;
-- not under REPEATABLE READ, where noting it could fail.
-- Returns true. Raises FL023, with the tenant as detail.
-- roles: none
create or replace function fenceline.check_tenant_limit(p_tenant text, p_more integer) returns boolean
language plpgsql as $$
declare
  v_most integer;
  v_jobs bigint;
  v_counted_at timestamptz;
begin
  select coalesce(l.max_jobs, s.max_tenant_jobs), m.ran_at into v_most, v_counted_at
  from fenceline.setting s
  left join fenceline.tenant_limit l on l.tenant = p_tenant
  left join fenceline.maintenance m on m.task = 'tenants';
  if v_most is null then
    return true;
  end if;
  if (v_counted_at < fenceline.clock() - interval '10 seconds') is not false
     and current_setting('transaction_isolation') = 'read committed' then
    perform fenceline.count_tenants(10);
  end if;
  select c.jobs into v_jobs from fenceline.tenant_count c where c.tenant = p_tenant;
  if coalesce(v_jobs, 0) + p_more > v_most then
    raise exception using errcode = 'FL023', detail = p_tenant,
      message = format('tenant %L has %s unfinished jobs, and %s more would be over its limit of %s', p_tenant,
                       coalesce(v_jobs, 0), p_more, v_most),
      hint = 'Wait until some have ended, or ask an operator for a higher limit.';
  end if;
  return true;
end;
$$;
--- file: functions/check_windows.sql
-- Raises FL031 unless the value is a list of windows: {"days": "mon-fri,sun", "from": "22:00", "to": "04:00"}, days may be
-- left out. A window that ends before it begins goes on into the next day.
-- roles: none
create or replace function fenceline.check_windows(p_name text, p_windows jsonb) returns void
language plpgsql immutable as $$
declare
  v_day constant text := '(mon|tue|wed|thu|fri|sat|sun)(-(mon|tue|wed|thu|fri|sat|sun))?';
  v_window jsonb;
begin
  if jsonb_typeof(p_windows) <> 'array' or jsonb_array_length(p_windows) > 100 then
    raise exception using errcode = 'FL031',
      message = format('windows of schedule %L must be a list of at most 100', p_name);
  end if;
  for v_window in select e from jsonb_array_elements(p_windows) e loop
    if jsonb_typeof(v_window) <> 'object' or v_window - array['days', 'from', 'to'] <> '{}'
       or coalesce(v_window ->> 'from', '') !~ '^([01]\d|2[0-3]):[0-5]\d$'
       or coalesce(v_window ->> 'to', '') !~ '^(([01]\d|2[0-3]):[0-5]\d|24:00)$'
       or v_window ->> 'from' = v_window ->> 'to'
       or coalesce(v_window ->> 'days', 'mon-sun') !~ ('^' || v_day || '(,' || v_day || ')*$') then
      raise exception using errcode = 'FL031',
        message = format('window %s of schedule %L is not valid', left(v_window::text, 200), p_name),
        hint = 'Use {"days": "mon-fri", "from": "22:00", "to": "04:00"}; a whole day is "00:00" to "24:00".';
    end if;
  end loop;
end;
$$;
--- file: functions/claim_details.sql
-- What a handler may want to know of its job beyond kind, args and tenant.
-- roles: none
create or replace function fenceline.claim_details(p_job_id bigint) returns jsonb
language sql stable as $$
  select jsonb_strip_nulls(jsonb_build_object(
    'labels', j.labels, 'created_by', j.created_by, 'expires_at', j.expires_at, 'key', j.key,
    'snapshot_hash', j.snapshot_hash, 'requires_hash', j.requires_hash, 'identity', j.identity, 'after', j.after,
    'group', j.group_name, 'retry_of', j.retry_of, 'parent', j.parent, 'resource_lock', j.resource_lock,
    'run_at', j.run_at, 'traceparent', j.traceparent))
    || case when j.snapshot is null then '{}' else jsonb_build_object('snapshot', j.snapshot) end
  from fenceline.job j where j.id = p_job_id;
$$;
--- file: functions/claim_for_runner.sql
-- Claims jobs of one lane for a runner (claim_jobs) and returns them as its server answers: one JSON document per attempt,
-- with the job as the view `jobs` shows it.
--
-- p_alone     claim one suspect, to be run alone; nothing unless the runner holds no other attempt
-- Raises as own_runner and claim_jobs. One lane per transaction: two claims that took the locks of several lanes in
-- different order would wait for each other.
-- roles: worker
create or replace function fenceline.claim_for_runner(
  p_runner_id integer,
  p_owner text,
  p_lane text,
  p_limit integer,
  p_kinds text[] default null,
  p_request_id uuid default null,
  p_alone boolean default false
) returns setof json
language plpgsql security definer set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
declare
  v_claim record;
begin
  perform fenceline.own_runner(p_runner_id, p_owner);
  if p_alone and exists (select 1 from fenceline.running r where r.worker_id = p_runner_id) then
    return;
  end if;
  for v_claim in
    select * from fenceline.claim_jobs(p_runner_id, p_lane, p_limit, p_kinds, p_request_id, null, p_alone)
  loop
    return query
    select json_build_object(
      'job', json_build_object(
        'id', fenceline.public_id(j.id), 'kind', j.kind, 'status', 'claimed', 'waiting_for', null, 'lane', r.lane,
        'priority', r.priority, 'tenant', j.tenant, 'args', j.args, 'labels', j.labels, 'attempt', r.number,
        'max_attempts', j.max_attempts, 'created_at', fenceline.id_time(j.id), 'created_by', j.created_by,
        'run_at', j.run_at, 'claimed_at', r.claimed_at, 'started_at', null, 'finished_at', null, 'worker', w.name,
        'phase', null, 'progress', null, 'result', null, 'error', null, 'errors', null, 'cancel_requested_at', null,
        'retry_of', fenceline.public_id(j.retry_of), 'parent', fenceline.public_id(j.parent),
        'delivery', coalesce(j.delivery, 'postgres'), 'backend_job_id', j.backend_job_id),
      'attempt_id', r.attempt_id, 'token', r.token, 'number', r.number, 'lease_seconds', w.lease_seconds,
      'timeout_seconds', j.timeout_seconds, 'alone', v_claim.alone, 'details', v_claim.more)
    from fenceline.running r
    join fenceline.job j on j.id = r.job_id
    join fenceline.worker w on w.id = r.worker_id
    where r.job_id = v_claim.job_id;
  end loop;
end;
$$;
--- file: functions/claim_jobs.sql
-- Claims up to p_limit jobs of one lane for a worker: each becomes an attempt with a fresh fence (attempt_id) and a
-- higher token, in the lane's order.
--
-- p_kinds         the kinds the worker can run; null: those it registered with, or all. A runner that is bound to a
--                 tenant gets that tenant's jobs only
-- p_request_id    makes a repeat safe: the same request again returns the attempts of the first that are still live
-- p_wait_seconds  when nothing is claimed, remember for so long that this worker waits, so that enqueue notifies it
-- p_alone         claim a suspect, to be run alone in its process (see pick_ready)
-- p_floor_*       see pick_ready; honoured except once a second per lane, when late commits below them are looked for
--
-- Fleet-wide limits are exact: a lane with slots, a rate or fairness is claimed from under its lock, and what is in use
-- is counted after that, in a statement (and so a snapshot) of its own. Needs READ COMMITTED for that (FL016).
-- Lock order: keys (admit_keys), lane, ready rows (skip locked), worker. Raises FL001, FL016, and FL015 when there is
-- something to claim but the worker's lease is over.
-- roles: worker
create or replace function fenceline.claim_jobs(
  p_worker_id integer,
  p_lane text default 'default',
  p_limit integer default 1,
  p_kinds text[] default null,
  p_request_id uuid default null,
  p_wait_seconds double precision default null,
  p_alone boolean default false,
  p_floor_priorities smallint[] default null,
  p_floor_seqs bigint[] default null
) returns table (
  job_id bigint,
  attempt_id uuid,
  token bigint,
  number smallint,
  kind text,
  args json,
  tenant text,
  priority smallint,
  seq bigint,
  max_attempts smallint,
  timeout_seconds double precision,
  alone boolean,
  more jsonb
)
language plpgsql security definer
set search_path = pg_catalog, pg_temp
-- The plans must not depend on statistics, which are always wrong for tables as lively as these.
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set jit = off
as $$
declare
  v_now timestamptz := fenceline.clock();
  v_lane fenceline.lane;
  v_exclusive boolean;
  v_limit integer := least(greatest(p_limit, 0), 10000);
  v_kinds text[] := p_kinds;
  v_tenant text;
  v_worker record;
  v_pick record;
  v_found boolean := false;
  v_shift integer;
  v_timeline bigint;
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    raise exception using errcode = 'FL016',
      message = format('claim_jobs runs in READ COMMITTED only, not in %s: limits could not be counted',
                       upper(current_setting('transaction_isolation')));
  end if;
  select * into v_lane from fenceline.lane l where l.name = p_lane;
  if not found then
    raise exception using errcode = 'FL001', message = format('lane %L does not exist', p_lane);
  end if;
  if p_request_id is not null and exists (
    select 1 from fenceline.claim_request q where q.request_id = p_request_id and q.worker_id = p_worker_id) then
    return query select * from fenceline.claimed_before(p_worker_id, p_request_id);
    return;
  end if;
  select coalesce(p_kinds, w.kinds), w.tenant into v_kinds, v_tenant from fenceline.worker w where w.id = p_worker_id;

  if exists (select 1 from fenceline.key_check c where c.id >= fenceline.id_at(v_now - interval '2 seconds')) then
    perform fenceline.admit_keys(fenceline.id_at(v_now - interval '2 seconds'));
  end if;

  v_exclusive := v_lane.slots is not null or v_lane.rate_per_second is not null or v_lane.fair;
  if v_exclusive then
    perform pg_advisory_xact_lock(1179926085, hashtext(p_lane));
  else
    perform pg_advisory_xact_lock_shared(1179926085, hashtext(p_lane));
  end if;
  -- Again, now that the lane cannot change: set_lane takes the same lock.
  select * into v_lane from fenceline.lane l where l.name = p_lane;
  if not v_lane.enabled
     or (not v_exclusive and (v_lane.slots is not null or v_lane.rate_per_second is not null or v_lane.fair)) then
    return;
  end if;
  if v_lane.slots is not null then
    v_limit := least(v_limit, v_lane.slots - (
      select count(*)::integer from fenceline.running r where r.counted and r.lane = p_lane));
  end if;
  if v_lane.rate_per_second is not null then
    v_limit := least(v_limit, floor(fenceline.rate_tokens(v_lane, v_now)))::integer;
  end if;

  if v_limit > 0 then
    if v_tenant is not null then
      v_pick := fenceline.pick_tenant(p_lane, v_tenant, v_kinds, v_limit, p_alone, v_lane.fair);
    elsif v_lane.fair then
      v_pick := fenceline.pick_fair(p_lane, v_kinds, v_limit, p_alone);
      if cardinality(v_pick.rows) = 0 then
        -- A job whose enqueue was open while the lane became fair is not marked as such: it comes last, but it comes.
        v_pick := fenceline.pick_ready(p_lane, v_kinds, v_limit, p_alone, null, null);
      end if;
    elsif p_floor_priorities is null or v_lane.ageing_seconds is not null
          or fenceline.is_scan_due(p_lane, v_now) then
      v_pick := fenceline.pick_ready(p_lane, v_kinds, v_limit, p_alone, null, null);
    else
      v_pick := fenceline.pick_ready(p_lane, v_kinds, v_limit, p_alone, p_floor_priorities, p_floor_seqs);
    end if;
    v_found := cardinality(v_pick.rows) > 0;
  end if;
  if not v_found then
    if p_wait_seconds is not null then
      perform fenceline.start_waiting(p_worker_id, p_lane, p_wait_seconds, v_now);
    end if;
    return;
  end if;

  -- After the lane's lock has been waited for: those before us have charged the rate until then, and what made the picked
  -- jobs ready was not later than their claim.
  v_now := fenceline.clock();
  -- Held against the sweep: a worker whose lease is over gets nothing, and one that is swept now waits here.
  select w.lease_until into v_worker from fenceline.worker w
  where w.id = p_worker_id and w.stopped_at is null and w.lease_until > v_now for key share;
  if not found then
    raise exception using errcode = 'FL015',
      message = format('worker %s is not registered or its lease is over: register again', p_worker_id);
  end if;
  if p_request_id is not null then
    insert into fenceline.claim_request (request_id, worker_id, at) values (p_request_id, p_worker_id, v_now)
    on conflict (request_id) do update set worker_id = excluded.worker_id, at = excluded.at
      where claim_request.worker_id <> excluded.worker_id;  -- a worker that had to register again
    if not found then
      -- The first was still under way when we looked; it has committed now. Nothing has been taken yet.
      return query select * from fenceline.claimed_before(p_worker_id, p_request_id);
      return;
    end if;
  end if;
  if v_lane.rate_per_second is not null then
    perform fenceline.take_tokens(v_lane, v_now, cardinality(v_pick.rows));
  end if;
  if v_pick.uses & 1 <> 0 then
    delete from fenceline.dedupe d using fenceline.ready r, fenceline.job j
    where r.ctid = any(v_pick.rows) and r.uses & 1 <> 0 and j.id = r.job_id
      and d.tenant = j.tenant and d.key = j.dedupe_key and d.job_id = j.id;
  end if;
  if v_pick.uses & 48 <> 0 then
    perform fenceline.refuse_claims(v_pick.rows, v_now);
  end if;
  if exists (select 1 from fenceline.waiter w where w.lane = p_lane and w.worker_id = p_worker_id) then
    delete from fenceline.waiter w where w.lane = p_lane and w.worker_id = p_worker_id;
  end if;
  if exists (select 1 from fenceline.follow) then
    perform fenceline.tell_followers(array(
      select r.job_id from fenceline.ready r where r.ctid = any(v_pick.rows)));
  end if;

  -- The timeline in the high bits: after a failover that lost a claim, the next token is higher all the same.
  v_timeline := fenceline.timeline() << 32;
  v_shift := coalesce(v_lane.ageing_seconds, 0);
  return query
  with picked as materialized (
    delete from fenceline.ready r where r.ctid = any(v_pick.rows)
    returning r.job_id, r.seq as rank, r.priority as level, r.kind, r.tenant,
              coalesce(r.own_priority, r.priority) as priority,
              fenceline.aged_seq(r.seq, -coalesce(r.own_priority, 0), v_shift) as seq,
              gen_random_uuid() as attempt_id, greatest(coalesce(r.token, 0), v_timeline) + 1 as token,
              (coalesce(r.number, 0) + 1)::smallint as number, r.deaths, r.uses
  ), claimed as (
    insert into fenceline.running (job_id, token, claimed_at, worker_id, attempt_id, number, priority, lane, seq,
                                   request_id, uses, deaths, counted)
    select p.job_id, p.token, v_now, p_worker_id, p.attempt_id, p.number, p.priority, p_lane, nullif(p.seq, p.job_id),
           p_request_id, p.uses, p.deaths,
           case when v_lane.slots is not null or v_lane.stale_timeout_seconds is not null then true end
    from picked p
  )
  select p.job_id, p.attempt_id, p.token, p.number, p.kind, j.args, p.tenant, p.priority, p.rank, j.max_attempts,
         j.timeout_seconds, p.deaths is not null,
         -- A plain job has nothing more to tell, and building JSON costs as much as the rest of the row.
         case when num_nonnulls(j.labels, j.created_by, j.expires_at, j.key, j.snapshot, j.requires_hash, j.identity,
                                j.after, j.group_name, j.retry_of, j.parent, j.resource_lock, j.run_at,
                                j.traceparent) > 0
              then fenceline.claim_details(p.job_id) end
  from picked p join fenceline.job j on j.id = p.job_id
  order by p.level desc, p.rank;
end;
$$;
--- file: functions/claimed_before.sql
-- The attempts of an earlier claim with this request id that are still live: the answer to a repeat whose first reply
-- was lost. Scans `running`: it is small, and a repeat is rare.
-- roles: none
create or replace function fenceline.claimed_before(p_worker_id integer, p_request_id uuid) returns table (
  job_id bigint, attempt_id uuid, token bigint, number smallint, kind text, args json, tenant text, priority smallint,
  seq bigint, max_attempts smallint, timeout_seconds double precision, alone boolean, more jsonb
)
language sql stable as $$
  select r.job_id, r.attempt_id, r.token, r.number, j.kind, j.args, j.tenant, r.priority, coalesce(r.seq, r.job_id),
         j.max_attempts, j.timeout_seconds, r.deaths is not null, nullif(fenceline.claim_details(r.job_id), '{}')
  from fenceline.running r join fenceline.job j on j.id = r.job_id
  where r.worker_id = p_worker_id and r.request_id = p_request_id
  order by r.priority desc, coalesce(r.seq, r.job_id);
$$;
--- file: functions/clock.sql
-- The database's time, the only one that counts. One function, so that a test can move it.
-- roles: none
create or replace function fenceline.clock() returns timestamptz
language sql volatile parallel safe as $$
  select clock_timestamp();
$$;
--- file: functions/count_tenants.sql
-- Counts the unfinished jobs of every tenant, for check_tenant_limit, unless that was done within the interval. One pass
-- over the tables of unfinished jobs: no index by tenant is kept on the hot path for it. A pass that takes long is made
-- less often, so that at most a twentieth of the time goes into counting.
-- roles: worker
create or replace function fenceline.count_tenants(p_interval_seconds double precision default 1) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_began timestamptz := clock_timestamp();  -- how long it takes, also where a test has stopped the clock
  v_took double precision;
begin
  select m.took_seconds into v_took from fenceline.maintenance m where m.task = 'tenants';
  if not fenceline.is_due('tenants', greatest(p_interval_seconds, 20 * v_took)) then
    return;
  end if;
  with counted as materialized (
    select u.tenant, count(*) as jobs
    from (select r.tenant from fenceline.ready r
          union all
          select t.tenant from fenceline.timer t
          union all
          select h.tenant from fenceline.held h
          union all
          -- A probe for each: a join may be planned as a scan of all jobs there ever were.
          select (select j.tenant from fenceline.job j where j.id = a.job_id) from fenceline.running a) u
    where u.tenant is not null
    group by u.tenant
  ), gone as (
    delete from fenceline.tenant_count c where c.tenant not in (select n.tenant from counted n)
  )
  insert into fenceline.tenant_count as c (tenant, jobs) select n.tenant, n.jobs from counted n
  on conflict (tenant) do update set jobs = excluded.jobs where c.jobs <> excluded.jobs;
  update fenceline.maintenance m set took_seconds = extract(epoch from clock_timestamp() - v_began)
  where m.task = 'tenants';
end;
$$;
--- file: functions/crash_attempt.sql
-- The process that ran one attempt, and nothing else, has died: the job did it. Its worker lives and says so.
--
-- p_error     what is known of the death: signal, exit_code
-- Returns `accepted`, `already` (said before: a reply was lost) or `stale` (the attempt is gone: nothing was changed).
-- Deaths of such processes are counted from the job's history, not in `deaths`: a job that has a process to itself does
-- not have to wait until a whole worker is empty to run alone.
-- Lock order: running row, then as settle.
-- roles: worker
create or replace function fenceline.crash_attempt(p_job_id bigint, p_attempt_id uuid, p_error jsonb default null)
returns text
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_run fenceline.running;
  v_deaths integer;
begin
  delete from fenceline.running r where r.job_id = p_job_id and r.attempt_id = p_attempt_id returning * into v_run;
  if not found then
    return case when exists (
      select 1 from fenceline.ended_attempt(p_job_id, p_attempt_id) h
      where coalesce(h.asked, h.outcome) in ('crashed', 'quarantined')) then 'already' else 'stale' end;
  end if;
  select count(*) into v_deaths from fenceline.history h
  where h.job_id = p_job_id and not h.final and h.outcome = 'crashed' and h.metadata ? 'isolated';
  perform fenceline.end_crashed(v_run, coalesce(v_run.deaths, 0) + v_deaths + 1, p_error, p_suspect => false,
                                p_metadata => '{"isolated": true}');
  return 'accepted';
end;
$$;
--- file: functions/create_decorated_lane.sql
-- A lane that is not there: created when a decorator named it (no worker has come first), else FL001.
-- roles: none
create or replace function fenceline.create_decorated_lane(p_lane text, p_decorated boolean) returns void
language plpgsql as $$
begin
  if p_decorated is not true then
    raise exception using errcode = 'FL001',
      message = format('lane %L does not exist: create it, or leave lane out', p_lane);
  end if;
  perform fenceline.check_name('lane', p_lane);
  insert into fenceline.lane (name) values (p_lane) on conflict do nothing;
end;
$$;
--- file: functions/create_hook.sql
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
  if p_secret is null or length(p_secret) not between 16 and 200 then
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
                                 to_jsonb(v_hook) - 'secret');
  return to_jsonb(v_hook) - 'secret';
end;
$$;
--- file: functions/create_partitions.sql
-- Makes the partitions of `job` and `history` for today and the days ahead, one per day. Enqueue never depends on it: what
-- has no partition goes to the default one. A day that already has rows there stays there.
-- DDL cannot be written without dynamic SQL; the only values in it are dates and numbers made here.
-- roles: worker
create or replace function fenceline.create_partitions(p_days integer default 3) returns integer
language plpgsql security definer set search_path = pg_catalog, pg_temp set lock_timeout = '1s' as $$
declare
  v_today date := (fenceline.clock() at time zone 'UTC')::date;
  v_day date;
  v_table text;
  v_name text;
  v_from bigint;
  v_to bigint;
  v_new integer;
  v_made integer := 0;
begin
  if not pg_try_advisory_xact_lock(1179926087, 1) then
    return 0;
  end if;
  for v_day in select v_today + i from generate_series(0, p_days) i loop
    v_new := 0;
    v_from := fenceline.id_at(v_day::timestamp at time zone 'UTC');
    v_to := fenceline.id_at((v_day + 1)::timestamp at time zone 'UTC');
    -- Both or neither: a day is dropped as a pair (drop_day).
    begin
      foreach v_table in array array['job', 'history'] loop
        v_name := format('%s_%s', v_table, to_char(v_day, 'YYYYMMDD'));
        continue when to_regclass('fenceline.' || v_name) is not null;
        -- Made apart and attached: the parent is not locked against enqueue meanwhile.
        execute format('create table fenceline.%I (like fenceline.%I including defaults including constraints)',
                       v_name, v_table);
        execute format('alter table fenceline.%I attach partition fenceline.%I for values from (%s) to (%s)',
                       v_table, v_name, v_from, v_to);
        v_new := v_new + 1;
      end loop;
      v_made := v_made + v_new;
    exception
      when check_violation then null;      -- the default partition has rows of that day
      -- Next time, not again now: while we wait for a lock, everybody who comes later waits behind us.
      when lock_not_available then return v_made;
    end;
  end loop;
  return v_made;
end;
$$;
--- file: functions/create_token.sql
-- Makes a token. The secret itself never comes here, only its SHA-256.
--
-- p_hash                 32 bytes
-- p_name                 the actor; null: made up from the role and the token's number
-- p_tenant               null: `default`
-- p_granter_permissions, p_granter_tenant   what the one who asks may give; null: anything, anywhere
-- Returns the token as list_tokens shows it. Raises FL002 (tenant), FL040, FL042 (name, expiry), FL043.
-- roles: admin
create or replace function fenceline.create_token(
  p_hash bytea,
  p_role text,
  p_tenant text default null,
  p_name text default null,
  p_expires_at timestamptz default null,
  p_actor text default null,
  p_granter_permissions text[] default null,
  p_granter_tenant text default null
) returns jsonb
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_role fenceline.role := fenceline.find_role(p_role);
  v_now timestamptz := fenceline.clock();
  v_token fenceline.token;
  v_json jsonb;
begin
  p_tenant := coalesce(p_tenant, 'default');
  perform fenceline.check_name('tenant', p_tenant);
  perform fenceline.check_grant(p_granter_permissions, p_granter_tenant, v_role.permissions, p_tenant);
  -- A colon marks actors that are no tokens, such as those of OIDC.
  if p_name !~ '^[^:[:cntrl:]]{1,100}$' then
    raise exception using errcode = 'FL042',
      message = format('name %L of a token must have 1 to 100 characters, without a colon', left(p_name, 120));
  end if;
  if p_expires_at <= v_now then
    raise exception using errcode = 'FL042', message = format('a token that expires at %s is of no use', p_expires_at);
  end if;
  insert into fenceline.token (hash, name, role, tenant, created_at, created_by, expires_at)
  values (p_hash, coalesce(p_name, ''), p_role, p_tenant, v_now, p_actor, p_expires_at)
  returning * into v_token;
  if p_name is null then
    update fenceline.token t set name = p_role || '-' || v_token.id where t.id = v_token.id returning * into v_token;
  end if;
  v_json := fenceline.token_json(v_token);
  perform fenceline.record_event(p_actor, 'token.create', 'token ' || v_token.id, p_tenant, null, null, v_json);
  return v_json;
end;
$$;
--- file: functions/create_trigger.sql
-- Makes an incoming webhook of a tenant: a signed request to it enqueues a job. Returns it, without the secret.
--
-- p_settings  kind (required), args, map, options, idempotency_header, dedupe_header, window_seconds (300); see the table
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
  v_trigger.window_seconds := 300;
  v_trigger.enabled := true;
  v_trigger.created_at := fenceline.clock();
  v_trigger.created_by := p_actor;
  if p_settings ->> 'window_seconds' is not null then
    v_trigger.window_seconds := fenceline.read_integer(p_settings, 'window_seconds', 1, 86400, 'FL048');
  end if;
  if p_secret is null or length(p_secret) not between 16 and 200 then
    raise exception using errcode = 'FL048',
      message = format('the secret of trigger %L must have 16 to 200 characters', p_name);
  end if;
  if jsonb_typeof(v_trigger.args) <> 'object' or jsonb_typeof(v_trigger.options) <> 'object'
     or jsonb_typeof(coalesce(v_trigger.map, '{}')) <> 'object' then
    raise exception using errcode = 'FL048',
      message = format('args, map and options of trigger %L must be JSON objects', p_name);
  end if;
  perform fenceline.read_options(v_trigger.kind, v_trigger.options);
  for v_path in select m.key, m.value from jsonb_each(coalesce(v_trigger.map, '{}')) m loop
    begin
      perform (v_path.value #>> '{}')::jsonpath;
      if jsonb_typeof(v_path.value) <> 'string' then
        raise exception using errcode = 'data_exception', message = 'use a string';
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
  insert into fenceline.trigger select v_trigger.* on conflict do nothing;
  if not found then
    raise exception using errcode = 'FL044', message = format('trigger %L exists already', p_name);
  end if;
  perform fenceline.record_event(p_actor, 'trigger.create', p_name, p_tenant, null, null,
                                 fenceline.trigger_json(v_trigger));
  return fenceline.trigger_json(v_trigger);
end;
$$;
--- file: functions/declare_kinds.sql
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
--- file: functions/declare_schedules.sql
-- Records the schedules in a program's code, when it starts. What operators have said about them stays in force; a schedule
-- that is declared as before is left alone. One that has left the code stays until it is deleted.
--
-- p_schedules {"name": {the settings of set_schedule}, …}
-- Raises what set_schedule raises.
-- roles: worker
create or replace function fenceline.declare_schedules(p_schedules jsonb) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_given record;
  v_old fenceline.schedule;
begin
  if jsonb_typeof(p_schedules) is distinct from 'object'
     or jsonb_path_exists(p_schedules, 'strict $.* ? (@.type() != "object")') then
    raise exception using errcode = 'FL031', message = 'schedules must be a JSON object of objects, one per schedule';
  end if;
  for v_given in select e.key as name, e.value as says from jsonb_each(p_schedules) e order by e.key loop
    perform fenceline.check_name('schedule', v_given.name);
    perform pg_advisory_xact_lock(1179926089, hashtext(v_given.name));
    select * into v_old from fenceline.schedule s where s.name = v_given.name for update;
    if v_old.declared is distinct from v_given.says then
      perform fenceline.store_schedule(v_given.name, v_old, v_given.says, coalesce(v_old.overrides, '{}'), null);
    end if;
    update fenceline.schedule s set declared_at = fenceline.clock() where s.name = v_given.name;
  end loop;
end;
$$;
--- file: functions/defer_schedule.sql
-- Notes why a schedule could not be looked at (a zone that this machine does not know, say), and lets it be for a minute.
-- roles: worker
create or replace function fenceline.defer_schedule(p_name text, p_revision bigint, p_error text) returns void
language sql security definer set search_path = pg_catalog, pg_temp as $$
  update fenceline.schedule s set error = left(p_error, 1000), due_at = fenceline.clock() + interval '1 minute'
  where s.name = p_name and s.revision = p_revision and s.due_at <= fenceline.clock();
$$;
--- file: functions/delete_hook.sql
-- Deletes an outgoing webhook; deliveries that are under way fail. Raises FL060 when it is not there, or in another tenant
-- than p_tenant (null: any).
-- roles: admin
create or replace function fenceline.delete_hook(p_id integer, p_tenant text default null, p_actor text default null)
returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_hook fenceline.hook;
begin
  delete from fenceline.hook h where h.id = p_id and (p_tenant is null or h.tenant = p_tenant) returning * into v_hook;
  if not found then
    raise exception using errcode = 'FL060', message = format('hook %s does not exist', p_id);
  end if;
  perform fenceline.record_event(p_actor, 'hook.delete', 'hook ' || p_id, v_hook.tenant, null,
                                 to_jsonb(v_hook) - 'secret', null);
end;
$$;
--- file: functions/delete_job.sql
-- Deletes a finished job and all that is kept of it. Raises FL010, FL011 (unfinished).
-- roles: admin
create or replace function fenceline.delete_job(
  p_job_id bigint,
  p_actor text default null,
  p_tenant text default null
) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_job fenceline.job := fenceline.find_job(p_job_id, p_tenant);
begin
  if not exists (select 1 from fenceline.history h where h.job_id = p_job_id and h.final) then
    perform fenceline.wrong_status(p_job_id, 'deleted', 'finished');
  end if;
  perform fenceline.record_event(p_actor, 'job.delete', fenceline.public_id(p_job_id), v_job.tenant, null,
    jsonb_build_object('kind', v_job.kind, 'status', fenceline.job_status(p_job_id)), null);
  perform fenceline.forget_jobs(array[p_job_id]);
end;
$$;
--- file: functions/delete_jobs.sql
-- Deletes those of a list that are finished jobs, and all that is kept of them; the others are left alone. One audit event
-- for all, with their number by kind: for jobs by the thousand, where one event each (delete_job) would be noise.
--
-- Returns how many were deleted.
-- roles: admin
create or replace function fenceline.delete_jobs(
  p_job_ids bigint[],
  p_actor text default null,
  p_reason text default null
) returns integer
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_finished bigint[];
  v_kinds jsonb;
begin
  v_finished := array(
    select distinct h.job_id from fenceline.history h where h.job_id = any(p_job_ids) and h.final);
  if cardinality(v_finished) > 0 then
    select jsonb_object_agg(k.kind, k.jobs) into v_kinds
    from (select j.kind, count(*) as jobs from fenceline.job j where j.id = any(v_finished) group by j.kind) k;
    perform fenceline.record_event(p_actor, 'jobs.delete', 'jobs', null, p_reason, v_kinds, null);
    perform fenceline.forget_jobs(v_finished);
  end if;
  return cardinality(v_finished);
end;
$$;
--- file: functions/delete_lane.sql
-- Deletes a lane that no unfinished job is in. Raises FL001, FL019 (in use, or `default`).
-- A job that is just being enqueued is not seen: restore_lanes makes the lane anew for it.
-- roles: admin
create or replace function fenceline.delete_lane(
  p_name text,
  p_actor text default null,
  p_actor_tenant text default null
) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_old fenceline.lane;
begin
  perform pg_advisory_xact_lock(1179926085, hashtext(p_name));
  select * into v_old from fenceline.lane l where l.name = p_name for update;
  if not found then
    raise exception using errcode = 'FL001', message = format('lane %L does not exist', p_name);
  end if;
  if p_name = 'default' then
    raise exception using errcode = 'FL019', message = 'lane ''default'' cannot be deleted: jobs without a lane go there';
  end if;
  if exists (select 1 from fenceline.ready r where r.lane = p_name)
     or exists (select 1 from fenceline.running r where r.lane = p_name)
     or exists (select 1 from fenceline.timer t where t.lane = p_name)
     or exists (select 1 from fenceline.held h where h.lane = p_name) then
    raise exception using errcode = 'FL019',
      message = format('lane %L has unfinished jobs: move its kinds to another lane or let them end first', p_name);
  end if;
  perform fenceline.record_event(p_actor, 'lane.delete', p_name, p_actor_tenant, null, fenceline.lane_json(v_old), null);
  update fenceline.kind k set lane = null where k.lane = p_name;
  delete from fenceline.lane_state where lane = p_name;
  delete from fenceline.lane where name = p_name;
end;
$$;
--- file: functions/delete_role.sql
-- Deletes a role of the database's own that no valid token has. Raises FL040, FL043, FL045 (built in, or in use).
-- roles: admin
create or replace function fenceline.delete_role(
  p_name text,
  p_actor text default null,
  p_granter_permissions text[] default null,
  p_actor_tenant text default null
) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_role fenceline.role := fenceline.find_role(p_name);
begin
  perform fenceline.check_role_owner(p_granter_permissions);
  if v_role.built_in then
    raise exception using errcode = 'FL045', message = format('role %L is built in and cannot be deleted', p_name);
  end if;
  if exists (select 1 from fenceline.token t where t.role = p_name and t.revoked_at is null
               and (t.expires_at is null or t.expires_at > fenceline.clock())) then
    raise exception using errcode = 'FL045', message = format('role %L is in use', p_name),
      hint = 'Revoke its tokens first.';
  end if;
  perform fenceline.record_event(p_actor, 'role.delete', 'role ' || p_name, p_actor_tenant, null, to_jsonb(v_role), null);
  delete from fenceline.role where name = p_name;
end;
$$;
--- file: functions/delete_schedule.sql
-- Deletes a schedule; its jobs stay. If it is in some code, the next start of that program brings it back: pause it instead.
-- Raises FL030.
-- roles: admin
create or replace function fenceline.delete_schedule(p_name text, p_actor text default null) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_old fenceline.schedule;
begin
  delete from fenceline.schedule s where s.name = p_name returning * into v_old;
  if not found then
    raise exception using errcode = 'FL030', message = format('schedule %L does not exist', p_name);
  end if;
  perform fenceline.record_event(p_actor, 'schedule.delete', p_name, v_old.options ->> 'tenant', null,
    coalesce(v_old.declared, '{}') || v_old.overrides, null);
end;
$$;
--- file: functions/delete_trigger.sql
-- Deletes a tenant's incoming webhook. Raises FL047.
-- roles: admin
create or replace function fenceline.delete_trigger(p_name text, p_tenant text, p_actor text default null) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_trigger fenceline.trigger;
begin
  delete from fenceline.trigger t where t.name = p_name and t.tenant = p_tenant returning * into v_trigger;
  if not found then
    raise exception using errcode = 'FL047', message = format('trigger %L does not exist', left(p_name, 80));
  end if;
  perform fenceline.record_event(p_actor, 'trigger.delete', p_name, p_tenant, null,
                                 fenceline.trigger_json(v_trigger), null);
end;
$$;
--- file: functions/dependency_error.sql
-- The error of a job that can no longer run because one it waited for did not succeed.
-- roles: none
create or replace function fenceline.dependency_error(p_after_id bigint) returns jsonb
language sql immutable parallel safe as $$
  select jsonb_build_object('code', 'dependency_failed',
    'message', format('job %s, which this one waited for, did not succeed', fenceline.public_id(p_after_id)),
    'job', fenceline.public_id(p_after_id));
$$;
--- file: functions/drain_system.sql
-- System drain: refuses enqueues from outside (FL014), retry_job among them, while claims, children, retries of failed
-- attempts and schedules go on; or resumes.
-- roles: admin
create or replace function fenceline.drain_system(
  p_draining boolean,
  p_actor text default null,
  p_reason text default null,
  p_actor_tenant text default null
) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_before boolean;
begin
  if p_draining is null then
    raise exception using errcode = 'FL007', message = 'draining must be true (drain) or false (resume), not null';
  end if;
  select s.draining into v_before from fenceline.setting s for update;
  update fenceline.setting set draining = p_draining;
  perform fenceline.record_event(p_actor, case when p_draining then 'system.drain' else 'system.resume' end, 'system',
    p_actor_tenant, p_reason, jsonb_build_object('draining', v_before), jsonb_build_object('draining', p_draining));
end;
$$;
--- file: functions/drop_day.sql
-- Drops the partitions of one day, if all in them that has ended did so before p_ended_before; live jobs of that day move
-- to the default partition. Returns how many jobs were forgotten; null: not yet.
--
-- From the detach to the end of the transaction nobody else can enqueue or finish. So what takes long comes before it:
-- reading through the day, and deleting logs and the like, p_limit rows at a time (then it is "not yet"). Afterwards only
-- what may have changed meanwhile is looked at again. A day with many live jobs is not dropped: moving them would take
-- long, too.
-- roles: none
create or replace function fenceline.drop_day(p_day text, p_ended_before timestamptz, p_limit integer) returns bigint
language plpgsql as $$
declare
  v_ended bigint;
  v_live bigint[];
  v_young boolean;
  v_from bigint := fenceline.id_at(to_date(p_day, 'YYYYMMDD')::timestamp at time zone 'UTC');
  v_to bigint := fenceline.id_at((to_date(p_day, 'YYYYMMDD') + 1)::timestamp at time zone 'UTC');
begin
  execute format('select exists (select 1 from fenceline.%I where ended_at >= $1)', 'history_' || p_day)
    into v_young using p_ended_before;
  if v_young then
    return null;
  end if;
  -- What has no final row is alive.
  execute format('select count(h.job_id), coalesce(array_agg(j.id) filter (where h.job_id is null), ''{}'')
                  from fenceline.%I j left join fenceline.%I h on h.job_id = j.id and h.final',
                 'job_' || p_day, 'history_' || p_day)
    into v_ended, v_live;
  if cardinality(v_live) > 1000 or not fenceline.forget_details(v_from, v_to, v_live, p_limit) then
    return null;
  end if;

  execute format('alter table fenceline.job detach partition fenceline.%I', 'job_' || p_day);
  execute format('alter table fenceline.history detach partition fenceline.%I', 'history_' || p_day);
  execute format('select exists (select 1 from fenceline.%I where ended_at >= $1)', 'history_' || p_day)
    into v_young using p_ended_before;
  if v_young then
    raise exception using errcode = 'lock_not_available', message = 'a job of that day has just ended';
  end if;
  -- An enqueue that stayed open for longer than the retention: its job was not seen above.
  v_live := v_live || array(
    select r.job_id from fenceline.ready r where r.job_id >= v_from and r.job_id < v_to union all
    select r.job_id from fenceline.running r where r.job_id >= v_from and r.job_id < v_to union all
    select t.job_id from fenceline.timer t where t.job_id >= v_from and t.job_id < v_to union all
    select h.job_id from fenceline.held h where h.job_id >= v_from and h.job_id < v_to);
  -- After the detach their ids belong to the default partitions.
  execute format('insert into fenceline.job select * from fenceline.%I where id = any($1)', 'job_' || p_day) using v_live;
  execute format('insert into fenceline.history select * from fenceline.%I where job_id = any($1) and not final',
                 'history_' || p_day) using v_live;
  execute format('drop table fenceline.%I, fenceline.%I', 'job_' || p_day, 'history_' || p_day);
  return v_ended;
end;
$$;
--- file: functions/end_attempt.sql
-- Writes the history of an attempt whose `running` row the caller has just deleted (so the fence is rotated), and sends
-- the job back to the queue unless this is its end. Returns the outcome if final, else null; the caller settles.
--
-- p_asked     failed · failed_for_good · cancelled · snoozed · released · lost · crashed · quarantined · succeeded …
-- The rules, in one place:
--   failed, lost   again while number < max_attempts, else failed; lost goes back at once, failed after its delay
--   snoozed, released, crashed   again, and the attempt is refunded (the token is not)
--   a job that was asked to stop ends as cancelled where it would otherwise go back to the queue
-- roles: none
create or replace function fenceline.end_attempt(
  p_run fenceline.running,
  p_asked text,
  p_result jsonb default null,
  p_error jsonb default null,
  p_errors jsonb default null,
  p_delay double precision default null,
  p_ran_seconds double precision default null,
  p_metadata jsonb default null,
  p_actor text default null,
  p_deaths smallint default null
) returns text
language plpgsql as $$
declare
  v_now timestamptz := fenceline.clock();
  v_job fenceline.job;
  v_outcome text;
  v_final boolean;
  v_error jsonb := p_error;
  v_number smallint := p_run.number;
  v_run_at timestamptz;
  v_seq bigint;
  v_uses integer := coalesce(p_run.uses, 0) & ~1;  -- the dedupe key was given up at the claim
begin
  select * into v_job from fenceline.job j where j.id = p_run.job_id;
  case p_asked
    when 'failed', 'lost' then
      v_final := p_run.number >= v_job.max_attempts;
      v_outcome := case when v_final then 'failed' else p_asked end;
    when 'failed_for_good', 'quarantined' then
      v_final := true;
      v_outcome := 'failed';
    when 'snoozed', 'released', 'crashed' then
      v_final := false;
      v_outcome := p_asked;
      v_number := p_run.number - 1;
    else
      v_final := true;
      v_outcome := p_asked;
  end case;
  if not v_final and p_run.cancel_requested_at is not null then
    v_final := true;
    v_outcome := 'cancelled';
  end if;
  if v_outcome = 'cancelled' then
    v_error := coalesce(v_error, fenceline.cancelled_error(p_run.cancel_reason));
  end if;
  insert into fenceline.history (job_id, ended_at, token, claimed_at, started_at, worker_id, attempt_id, number, final,
                                 outcome, asked, result, error, errors, metadata, actor)
  values (p_run.job_id, v_now, p_run.token, p_run.claimed_at,
          coalesce(v_now - make_interval(secs => p_ran_seconds), p_run.started_at), p_run.worker_id, p_run.attempt_id,
          p_run.number, v_final, v_outcome, nullif(p_asked, v_outcome), p_result, v_error, p_errors, p_metadata,
          coalesce(p_actor, p_run.cancel_actor));
  if p_run.counted then
    perform fenceline.wake(array[p_run.lane]);  -- a slot is free
  end if;
  if v_uses & 64 <> 0 then
    delete from fenceline.child c where c.job_id = p_run.job_id;  -- only a good end makes children
    v_uses := v_uses & ~64;
  end if;
  if v_final then
    return v_outcome;
  end if;

  if p_asked = 'released' then
    v_seq := coalesce(p_run.seq, p_run.job_id);  -- as if it had not been claimed
  else
    v_seq := fenceline.next_id();
  end if;
  if p_asked <> 'released' or p_run.started_at is not null or p_ran_seconds is not null then
    v_uses := v_uses & ~16;  -- it has started: expires_at is met
  end if;
  if p_asked = 'failed' then
    v_run_at := v_now + make_interval(secs => coalesce(p_delay, fenceline.retry_delay(
      coalesce(v_job.retry, (select k.retry from fenceline.kind k where k.name = v_job.kind)), p_run.number)));
  elsif p_asked = 'snoozed' then
    v_run_at := v_now + make_interval(secs => coalesce(p_delay, 0));
  end if;
  perform fenceline.place_jobs(array[row(
    p_run.job_id, v_seq, p_run.priority, p_run.lane, v_job.kind, v_job.tenant, v_number, p_run.token,
    coalesce(p_deaths, p_run.deaths), nullif(v_uses, 0), v_run_at)::fenceline.live]);
  return null;
end;
$$;
--- file: functions/end_crashed.sql
-- Ends an attempt that was running in a process when that died; the caller has just deleted its `running` row.
--
-- p_deaths    how many processes have died with the job alone in them, this one included
-- p_suspect   whether it must run alone from now on; not needed where it has a process to itself anyway
-- The rule, in one place: the third such death is the end, with code `quarantined`; before that the attempt is refunded.
-- Lock order: as settle.
-- roles: none
create or replace function fenceline.end_crashed(
  p_run fenceline.running,
  p_deaths integer,
  p_error jsonb,
  p_suspect boolean default true,
  p_metadata jsonb default null
) returns void
language plpgsql as $$
declare
  v_error jsonb := jsonb_build_object('code', 'crashed', 'message', 'the worker process died') || coalesce(p_error, '{}');
  v_outcome text;
begin
  v_outcome := case when p_deaths >= 3
    then fenceline.end_attempt(p_run, 'quarantined', p_metadata => p_metadata, p_error => v_error || jsonb_build_object(
           'code', 'quarantined', 'message', 'the job killed its process 3 times while it ran alone'))
    else fenceline.end_attempt(p_run, 'crashed', p_metadata => p_metadata, p_error => v_error,
           p_deaths => case when p_suspect then p_deaths::smallint end) end;
  perform fenceline.settle_if_final(p_run, v_outcome);
end;
$$;
--- file: functions/end_waiting.sql
-- Ends jobs that no worker holds: out of ready, timer and held, into a final history row, and all that follows.
-- Returns the ids that were ended; an id that a worker claimed in the meantime is not among them.
-- Lock order: ready, timer, held; then as settle.
-- roles: none
create or replace function fenceline.end_waiting(p_job_ids bigint[], p_outcome text, p_error jsonb, p_actor text)
returns bigint[]
language plpgsql as $$
declare
  v_ended bigint[];
begin
  v_ended := fenceline.bury_waiting(p_job_ids, p_outcome, p_error, p_actor);
  if v_ended is not null then
    perform fenceline.settle(v_ended, 63);
  end if;
  return coalesce(v_ended, '{}');
end;
$$;
--- file: functions/enqueue.sql
-- Enqueues one job in the caller's transaction.
--
-- p_kind      what to do; only this is required
-- p_args      a JSON object; json, not jsonb, so that \u0000 reaches us and gets an error of ours
-- p_options   lane priority run_at expires_at dedupe_key idempotency_key max_attempts labels resource_lock key key_limit
--             needs_approval snapshot requires_hash after identity tenant timeout retry group parent
-- p_actor     who enqueues it (created_by)
-- p_defaults  what the handler's decorator says: lane priority max_attempts retry timeout; weaker than p_options and
--             than the lane that lists the kind
-- p_origin    'outside', or 'child' / 'schedule', which a system drain lets through
-- Returns the job's internal id (public_id shows it as people see it), and whether this call made it (false: deduplicated
-- or repeated).
-- Raises FL001–FL008, FL013, FL014, FL017, FL020, FL023; then nothing has changed.
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
      insert into fenceline.job as j (id, priority, max_attempts, kind, lane, tenant, args, created_by, timeout_seconds)
      select fenceline.next_id(), coalesce((p_defaults ->> 'priority')::smallint, k.priority, n.default_priority),
             coalesce((p_defaults ->> 'max_attempts')::smallint, k.max_attempts, 3::smallint), p_kind, n.name,
             'default', p_args, p_actor, coalesce((p_defaults ->> 'timeout')::double precision, k.timeout_seconds)
      from fenceline.setting s
      left join fenceline.kind k on k.name = p_kind
      join fenceline.lane n on n.name = coalesce(k.lane, p_defaults ->> 'lane', k.default_lane, 'default')
      where n.ageing_seconds is null and not n.fair and (not s.draining or p_origin <> 'outside')
        and p_origin in ('outside', 'child', 'schedule') and p_defaults -> 'retry' is null
        and case when s.limits_tenants and p_origin = 'outside' then fenceline.check_tenant_limit('default', 1) else true end
        and coalesce((p_defaults ->> 'max_attempts')::smallint, k.max_attempts, 3::smallint) > 0
        and octet_length(p_args::text) <= s.max_args_bytes
        and octet_length(p_kind) between 1 and 64 and ltrim(p_kind, 'abcdefghijklmnopqrstuvwxyz0123456789_.-') = ''
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
  v_made := fenceline.insert_jobs(p_kind, array[p_args], p_options, p_actor, p_defaults, p_origin);
  job_id := v_made.job_ids[1];
  created := coalesce(v_made.created[1], true);
end;
$$;
--- file: functions/enqueue_hooks.sql
-- Enqueues the deliveries that hooks ask for, for jobs that have just ended: in their own transaction, so exactly when they
-- end. What delivers, is itself not reported.
-- roles: none
create or replace function fenceline.enqueue_hooks(p_job_ids bigint[]) returns void
language plpgsql as $$
declare
  v_due record;
begin
  for v_due in
    select k.id, k.tenant, array_agg(json_build_object('hook', k.id, 'job', fenceline.public_id(j.id)) order by j.id) as args
    from unnest(p_job_ids) i
    join fenceline.job j on j.id = i
    join fenceline.history h on h.job_id = i and h.final
    join fenceline.hook k on k.tenant = j.tenant and h.outcome = any(k.statuses)
      and (k.kinds is null or j.kind = any(k.kinds))
    where j.kind <> 'fenceline.webhook'
    group by k.id, k.tenant
    order by k.id
  loop
    -- An operator may have deleted the lane; that must not keep a job from ending.
    insert into fenceline.lane (name, slots, poll_interval_ms, stale_timeout_seconds)
    values ('webhooks', 50, 1000, 300) on conflict do nothing;
    perform fenceline.insert_jobs('fenceline.webhook', v_due.args, json_build_object(
        'tenant', v_due.tenant, 'lane', 'webhooks', 'max_attempts', 12,
        'retry', json_build_object('backoff', 'exponential', 'base', 5, 'jitter', 0.2, 'max_delay', 3600)),
      'hook:' || v_due.id, null, 'child');
  end loop;
end;
$$;
--- file: functions/enqueue_jobs.sql
-- Enqueues jobs of different kinds and options in one statement: a workflow, for instance.
--
-- p_jobs      JSON array of objects: "kind", "args", "defaults", "ref" and the options of enqueue. A job may name jobs
--             of the same call in "after" as "@ref", or by their group; they may stand later in the array.
-- Returns the ids in the order of p_jobs. Raises as enqueue does, and FL009 when the references go round.
-- roles: producer, worker
create or replace function fenceline.enqueue_jobs(
  p_jobs json,
  p_actor text default null,
  p_origin text default 'outside',
  out job_ids bigint[],
  out created boolean[]
)
language plpgsql security definer set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan as $$
declare
  v_jobs jsonb := fenceline.to_jsonb_checked('jobs', p_jobs);
  v_count integer;
  v_left integer[];
  v_later integer[];
  v_refs jsonb := '{}';  -- "@ref": the id that it got
  v_named text[];  -- the refs that "after" names: most jobs are waited for by their group, or by nobody
  v_ref text;
  v_job jsonb;
  v_made record;
  v_i integer;
begin
  if jsonb_typeof(v_jobs) is distinct from 'array' or jsonb_path_exists(v_jobs, 'strict $[*] ? (@.type() != "object")') then
    raise exception using errcode = 'FL007', message = 'jobs must be a JSON array of objects';
  end if;
  select j ->> 'ref' into v_ref from jsonb_array_elements(v_jobs) j where j ? 'ref' group by 1 having count(*) > 1 limit 1;
  if found then
    raise exception using errcode = 'FL007',
      message = format('ref %L names more than one job: each job of a call needs a ref of its own', v_ref);
  end if;
  perform fenceline.check_after(j -> 'after') from jsonb_array_elements(v_jobs) j where j ->> 'after' is not null;
  v_named := array(
    select distinct a from jsonb_array_elements(v_jobs) j
    cross join lateral jsonb_array_elements_text(fenceline.after_list(j -> 'after')) a where a like '@%');
  v_count := jsonb_array_length(v_jobs);
  if p_origin = 'outside' and (select s.limits_tenants from fenceline.setting s) then  -- all of them, not one by one
    perform fenceline.check_tenant_limit(n.tenant, n.jobs)
    from (select coalesce(j ->> 'tenant', 'default') as tenant, count(*)::integer as jobs
          from jsonb_array_elements(v_jobs) j where not j ?| array['dedupe_key', 'idempotency_key'] group by 1) n;
  end if;
  v_left := array(select i from generate_series(1, v_count) i);
  job_ids := array_fill(null::bigint, array[v_count]);
  created := array_fill(null::boolean, array[v_count]);

  while cardinality(v_left) > 0 loop
    v_later := '{}';
    foreach v_i in array v_left loop
      v_job := v_jobs -> (v_i - 1);
      if fenceline.has_open_reference(v_job -> 'after', v_refs)
         or (v_job #> '{after,group}' is not null and exists (
           select 1 from unnest(v_left[array_position(v_left, v_i) :] || v_later) i
           where v_jobs #>> array[(i - 1)::text, 'group'] = v_job #>> '{after,group}')) then
        v_later := v_later || v_i;
        continue;
      end if;
      v_made := fenceline.insert_jobs(
        v_job ->> 'kind',
        array[coalesce(v_job -> 'args', '{}')::json],
        (v_job - array['kind', 'args', 'defaults', 'ref']
          || case when v_job ? 'after'
                  then jsonb_build_object('after', fenceline.replace_after(v_job -> 'after', v_refs))
                  else '{}' end)::json,
        p_actor, (v_job -> 'defaults')::json, p_origin);
      job_ids[v_i] := v_made.job_ids[1];
      created[v_i] := coalesce(v_made.created[1], true);
      if '@' || (v_job ->> 'ref') = any(v_named) then
        v_refs := v_refs || jsonb_build_object('@' || (v_job ->> 'ref'), job_ids[v_i]);
      end if;
    end loop;
    if cardinality(v_later) = cardinality(v_left) then
      raise exception using errcode = 'FL009',
        message = format('the jobs at positions %s wait for each other or for a reference that is not there: '
                         '"after" must lead to jobs that can run first', array_to_string(v_later, ', '));
    end if;
    v_left := v_later;
  end loop;
end;
$$;
--- file: functions/enqueue_many.sql
-- Enqueues many jobs of one kind with the same options in one statement; parameters as in enqueue.
-- Returns the ids in the order of p_args; created is null when all are new.
-- roles: producer, worker
create or replace function fenceline.enqueue_many(
  p_kind text,
  p_args json[],
  p_options json default '{}',
  p_actor text default null,
  p_defaults json default null,
  p_origin text default 'outside',
  out job_ids bigint[],
  out created boolean[]
)
language sql security definer set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan as $$
  select m.job_ids, m.created from fenceline.insert_jobs(p_kind, p_args, p_options, p_actor, p_defaults, p_origin) m;
$$;
--- file: functions/enqueue_scheduled.sql
-- Makes the job of a schedule's tick (null: somebody asked for it). Its run_at is the tick, so that the handler can tell
-- which one it is. Where neither the schedule nor the kind says otherwise, it has priority 0 and two attempts: it is
-- retried once, and then the next tick comes.
-- roles: none
create or replace function fenceline.enqueue_scheduled(
  p_schedule fenceline.schedule,
  p_tick timestamptz,
  out job_id bigint,
  out created boolean
)
language plpgsql as $$
declare
  v_defaults jsonb;
begin
  select jsonb_build_object('priority', coalesce(max(k.priority), 0), 'max_attempts', coalesce(max(k.max_attempts), 2))
    into v_defaults
  from fenceline.kind k where k.name = p_schedule.kind;
  if p_tick is not null then
    v_defaults := v_defaults || jsonb_build_object('run_at', p_tick);
  end if;
  select e.job_id, e.created into enqueue_scheduled.job_id, enqueue_scheduled.created
  from fenceline.enqueue(p_schedule.kind, p_schedule.args::json, (v_defaults || p_schedule.options)::json,
                         'schedule:' || p_schedule.name, null, 'schedule') e;
end;
$$;
--- file: functions/erase_args.sql
-- Erases the args of a finished job: they are replaced by {"$erased": {"at": …, "by": …}}, and everything else stays. Audited.
-- An unfinished job still needs its args: cancel it first. An erased job cannot be retried (FL055). Erasing again is
-- harmless. What the handler wrote (result, error, logs) and jobs made from this one by retry_job are not touched; the old
-- row is in the files until the next vacuum, and in backups.
-- Raises FL010, FL011 (unfinished).
-- roles: admin
create or replace function fenceline.erase_args(
  p_job_id bigint,
  p_actor text default null,
  p_reason text default null,
  p_tenant text default null
) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_job fenceline.job := fenceline.find_job(p_job_id, p_tenant);
begin
  if not exists (select 1 from fenceline.history h where h.job_id = p_job_id and h.final) then
    perform fenceline.wrong_status(p_job_id, 'erased', 'finished');
  end if;
  update fenceline.job j
  set args = json_build_object('$erased', json_build_object('at', fenceline.clock(), 'by', p_actor))
  where j.id = p_job_id and not fenceline.is_erased(j.args);
  if found then
    perform fenceline.record_event(p_actor, 'job.erase', fenceline.public_id(p_job_id), v_job.tenant, p_reason, null, null);
  end if;
end;
$$;
--- file: functions/expire_jobs.sql
-- Ends jobs that were not started by their expires_at, wherever they wait. Returns how many.
-- roles: worker
create or replace function fenceline.expire_jobs(p_limit integer default 1000) returns integer
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_now timestamptz := fenceline.clock();
  v_due record;
  v_count integer := 0;
begin
  for v_due in
    select d.job_id, d.expires_at from fenceline.deadline d where d.expires_at <= v_now
    order by d.expires_at limit p_limit for update skip locked
  loop
    if exists (select 1 from fenceline.ready r where r.job_id = v_due.job_id and r.uses & 16 <> 0
               union all select 1 from fenceline.timer t where t.job_id = v_due.job_id and t.uses & 16 <> 0
               union all select 1 from fenceline.held h where h.job_id = v_due.job_id and h.uses & 16 <> 0) then
      v_count := v_count + cardinality(fenceline.end_waiting(
        array[v_due.job_id], 'cancelled', fenceline.expired_error(v_due.expires_at), null));
    elsif not exists (select 1 from fenceline.running r where r.job_id = v_due.job_id and r.started_at is null) then
      delete from fenceline.deadline d where d.job_id = v_due.job_id;  -- it has started, or is over
    end if;
  end loop;
  return v_count;
end;
$$;
--- file: functions/expired_error.sql
-- The error of a job that was not started by its expires_at.
-- roles: none
create or replace function fenceline.expired_error(p_expires_at timestamptz) returns jsonb
language sql stable parallel safe as $$
  select jsonb_build_object('code', 'expired', 'message', format('not started by %s', p_expires_at));
$$;
--- file: functions/find_job.sql
-- A job's row; raises FL010 when it is not there, or belongs to another tenant than p_tenant (null: any).
-- roles: none
create or replace function fenceline.find_job(p_job_id bigint, p_tenant text) returns fenceline.job
language plpgsql stable as $$
declare
  v_job fenceline.job;
begin
  select * into v_job from fenceline.job j where j.id = p_job_id and (p_tenant is null or j.tenant = p_tenant);
  if not found then
    raise exception using errcode = 'FL010',
      message = format('job %s does not exist', coalesce(fenceline.public_id(p_job_id), 'null'));
  end if;
  return v_job;
end;
$$;
--- file: functions/find_role.sql
-- A role's row; raises FL040 when there is none of that name.
-- roles: none
create or replace function fenceline.find_role(p_name text) returns fenceline.role
language plpgsql stable as $$
declare
  v_role fenceline.role;
begin
  select * into v_role from fenceline.role r where r.name = p_name;
  if not found then
    raise exception using errcode = 'FL040',
      message = format('role %L does not exist', left(p_name, 80)),
      hint = 'There are ' || (select string_agg(r.name, ', ' order by r.name) from fenceline.role r) || '.';
  end if;
  return v_role;
end;
$$;
--- file: functions/finish_as_runner.sql
-- Ends attempts of somebody's runners, many at a time: finish_attempts, for those that are theirs to end.
--
-- p_owner, p_tenant   as runner_attempt takes them; the other parameters as finish_attempts
-- p_finalized   the kind's finalizer has run in this transaction
-- Returns a row for each place (from 1) that was not accepted:
--   already     the same attempt has ended like this before: a reply was lost
--   stale       the attempt is gone, or has ended in another way
--   forbidden   the attempt is of a worker, or of somebody else's runner
--   not_found   the job is missing or foreign
--   finalizer   the kind has a finalizer, which must run in the transaction that ends the attempt well
-- None of these has changed anything. Raises as finish_attempts does.
-- Lock order: as finish_attempts.
-- roles: worker
create or replace function fenceline.finish_as_runner(
  p_owner text,
  p_tenant text,
  p_job_ids bigint[],
  p_attempt_ids uuid[],
  p_outcomes text[] default null,
  p_results jsonb[] default null,
  p_errors jsonb[] default null,
  p_error_lists jsonb[] default null,
  p_delays double precision[] default null,
  p_ran_seconds double precision[] default null,
  p_metadata jsonb[] default null,
  p_finalized boolean default false
) returns table (place integer, verdict text)
language plpgsql security definer set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set jit = off
as $$
declare
  v_refused integer[] := '{}';
  v_late record;
begin
  for place, verdict in
    select t.n, t.verdict from (
      select g.n::integer,
        case
          when j.id is null or j.tenant <> p_tenant then 'not_found'
          when r.job_id is null then nullif(coalesce((
            select case when w.runner and w.owner = p_owner then 'ended' else 'forbidden' end
            from fenceline.ended_attempt(g.job_id, g.attempt_id) h
            left join fenceline.worker w on w.id = h.worker_id), 'stale'), 'ended')
          when (w.runner and w.owner = p_owner) is not true then 'forbidden'
          when k.finalizer and not p_finalized and coalesce(g.outcome, 'succeeded') in ('succeeded', 'succeeded_with_errors')
            then 'finalizer'
        end as verdict
      from unnest(p_job_ids, p_attempt_ids, p_outcomes) with ordinality g(job_id, attempt_id, outcome, n)
      left join fenceline.job j on j.id = g.job_id
      left join fenceline.running r on r.job_id = g.job_id and r.attempt_id = g.attempt_id
      left join fenceline.worker w on w.id = r.worker_id
      left join fenceline.kind k on k.name = j.kind
    ) t where t.verdict is not null
  loop
    v_refused := v_refused || place;
    return next;
  end loop;

  -- Array subscripts keep every list that was given, and the nulls of those that were not.
  for v_late in
    with given as materialized (
      select i from generate_series(1, cardinality(p_job_ids)) i where i <> all(v_refused) order by i
    ), finished as materialized (
      select f.attempt_id, f.verdict from fenceline.finish_attempts(
        array(select p_job_ids[i] from given), array(select p_attempt_ids[i] from given),
        case when p_outcomes is not null then array(select p_outcomes[i] from given) end,
        case when p_results is not null then array(select p_results[i] from given) end,
        case when p_errors is not null then array(select p_errors[i] from given) end,
        case when p_error_lists is not null then array(select p_error_lists[i] from given) end,
        case when p_delays is not null then array(select p_delays[i] from given) end,
        case when p_ran_seconds is not null then array(select p_ran_seconds[i] from given) end,
        case when p_metadata is not null then array(select p_metadata[i] from given) end) f
    )
    select i, f.verdict from finished f join given on p_attempt_ids[i] = f.attempt_id order by i
  loop
    place := v_late.i;
    -- A replay is one only if it says the same: another result under the same outcome is another end.
    verdict := case when v_late.verdict = 'already' and exists (
      select 1 from fenceline.ended_attempt(p_job_ids[v_late.i], p_attempt_ids[v_late.i]) h
      where h.result is not distinct from p_results[v_late.i]
        and h.errors is not distinct from p_error_lists[v_late.i]
        and (p_errors[v_late.i] is null or h.error = p_errors[v_late.i])) then 'already' else 'stale' end;
    return next;
  end loop;
end;
$$;
--- file: functions/finish_attempt.sql
-- Ends one attempt; parameters as in finish_attempts. Returns accepted, already or stale.
-- roles: worker
create or replace function fenceline.finish_attempt(
  p_job_id bigint,
  p_attempt_id uuid,
  p_outcome text default 'succeeded',
  p_result jsonb default null,
  p_error jsonb default null,
  p_errors jsonb default null,
  p_delay double precision default null,
  p_metadata jsonb default null
) returns text
language sql security definer set search_path = pg_catalog, pg_temp as $$
  select coalesce((
    select f.verdict from fenceline.finish_attempts(array[p_job_id], array[p_attempt_id], array[p_outcome],
      array[p_result], array[p_error], array[p_errors], array[p_delay], null, array[p_metadata]) f), 'accepted');
$$;
--- file: functions/finish_attempts.sql
-- Ends attempts, many at a time: the terminal write, or the way back to the queue.
--
-- p_job_ids, p_attempt_ids   which attempts; a pair that is not live changes nothing
-- p_outcomes     per attempt: succeeded · succeeded_with_errors · failed (retried while attempts remain) ·
--                failed_for_good · cancelled · snoozed (again after a delay, attempt refunded) · released (given back,
--                attempt refunded, place in the queue kept). Null: all succeeded
-- p_results, p_errors, p_error_lists, p_metadata   JSON per attempt, or null
-- p_delays       seconds until a failed or snoozed job runs again; null: by its retry policy
-- p_ran_seconds  how long ago the handler started; null: as start_attempts recorded it
-- Returns only the pairs that were not accepted: `already` (the same attempt has ended with the same outcome before: a
-- reply was lost) or `stale` (the attempt is gone: nothing was changed).
-- Raises FL005 (a result is too large), FL007 (an unknown outcome, a number out of range, lists of different length).
-- Lock order: running rows, then as settle.
-- roles: worker
create or replace function fenceline.finish_attempts(
  p_job_ids bigint[],
  p_attempt_ids uuid[],
  p_outcomes text[] default null,
  p_results jsonb[] default null,
  p_errors jsonb[] default null,
  p_error_lists jsonb[] default null,
  p_delays double precision[] default null,
  p_ran_seconds double precision[] default null,
  p_metadata jsonb[] default null
) returns table (job_id bigint, attempt_id uuid, verdict text)
language plpgsql security definer
set search_path = pg_catalog, pg_temp
-- As in claim_jobs: plans that do not depend on statistics.
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set jit = off
as $$
declare
  v_now timestamptz := fenceline.clock();
  v_ended bigint[];
  v_attempts uuid[];
  v_freed text[];
  v_uses integer;
  v_given record;
  v_run fenceline.running;
  v_outcome text;
begin
  if cardinality(p_attempt_ids) is distinct from cardinality(p_job_ids)
     or cardinality(p_outcomes) <> cardinality(p_job_ids) then
    raise exception using errcode = 'FL007',
      message = format('%s jobs, %s attempts and %s outcomes were given: each job needs one of each',
                       cardinality(p_job_ids), cardinality(p_attempt_ids), cardinality(p_outcomes));
  end if;
  perform fenceline.check_outcomes(p_outcomes, p_results, p_error_lists, p_delays, p_ran_seconds);

  -- The common case in one statement. The fence is the join: both the job and the attempt must match.
  with given as materialized (
    select g.job_id, g.attempt_id, coalesce(g.outcome, 'succeeded') as outcome, g.result, g.errors, g.ran_seconds,
           g.metadata
    from unnest(p_job_ids, p_attempt_ids, p_outcomes, p_results, p_error_lists, p_ran_seconds, p_metadata)
      g(job_id, attempt_id, outcome, result, errors, ran_seconds, metadata)
    where g.outcome is null or g.outcome in ('succeeded', 'succeeded_with_errors')
  ), ended as (
    delete from fenceline.running r using given g
    where r.job_id = g.job_id and r.attempt_id = g.attempt_id
    returning r.job_id, r.token, r.claimed_at, r.started_at, r.worker_id, r.attempt_id, r.number, r.uses,
              case when r.counted then r.lane end as freed, g.outcome, g.result, g.errors, g.ran_seconds, g.metadata
  ), written as (
    insert into fenceline.history (job_id, ended_at, token, claimed_at, started_at, worker_id, attempt_id, number, final,
                                   outcome, result, errors, metadata)
    select e.job_id, v_now, e.token, e.claimed_at,
           coalesce(v_now - make_interval(secs => e.ran_seconds), e.started_at),
           e.worker_id, e.attempt_id, e.number, true, e.outcome, e.result, e.errors, e.metadata
    from ended e
  )
  select array_agg(e.job_id), array_agg(e.attempt_id), bit_or(e.uses),
         array_agg(distinct e.freed) filter (where e.freed is not null)
    into v_ended, v_attempts, v_uses, v_freed
  from ended e;
  if v_freed is not null then
    perform fenceline.wake(v_freed);  -- a slot is free
  end if;
  if v_uses & 64 <> 0 then
    perform fenceline.make_children(v_ended, v_attempts);
  end if;

  if coalesce(cardinality(v_ended), 0) < cardinality(p_job_ids) then
    for v_given in
      select g.* from unnest(p_job_ids, p_attempt_ids, p_outcomes, p_results, p_errors, p_error_lists, p_delays,
                             p_ran_seconds, p_metadata)
        g(job_id, attempt_id, outcome, result, error, errors, delay, ran_seconds, metadata)
      -- By attempt, not by job: one batch may hold an old and the live attempt of the same job.
      where (g.attempt_id = any(v_attempts)) is not true
    loop
      delete from fenceline.running r where r.job_id = v_given.job_id and r.attempt_id = v_given.attempt_id
      returning * into v_run;
      if found then
        v_outcome := fenceline.end_attempt(v_run, v_given.outcome, v_given.result, v_given.error, v_given.errors,
                                           v_given.delay, v_given.ran_seconds, v_given.metadata);
        if v_outcome is not null then
          v_ended := v_ended || v_run.job_id;
          v_uses := coalesce(v_uses, 0) | coalesce(v_run.uses, 0);
        end if;
      else
        job_id := v_given.job_id;
        attempt_id := v_given.attempt_id;
        verdict := case when exists (
          select 1 from fenceline.ended_attempt(v_given.job_id, v_given.attempt_id) h
          where coalesce(h.asked, h.outcome) = coalesce(v_given.outcome, 'succeeded')
        ) then 'already' else 'stale' end;
        return next;
      end if;
    end loop;
  end if;
  if v_ended is not null then
    perform fenceline.settle(v_ended, v_uses);
  end if;
end;
$$;
--- file: functions/fire_schedule.sql
-- Decides ticks of a schedule, all at once or not at all: each is enqueued or noted as skipped, and the next one is set.
--
-- p_revision, p_expected   the schedule as the caller read it: its revision and its next tick. When either has changed
--                          somebody else has decided, or an operator has changed it: then nothing happens
-- p_until                  every tick up to here is decided by this call
-- p_ticks, p_outcomes, p_from   the ticks in order; 'fire', 'window' or 'missed'; missed: the first tick of those that this
--                          row stands for
-- p_next                   the first tick after p_until; null: there is none
-- Returns how many jobs were made; null when it was not the caller's turn.
-- Exactly one fire per tick: the row's lock and the comparison let one caller through, and the primary key of schedule_tick
-- holds even when the clock is set back. A refused enqueue is noted with its tick: the schedule goes on.
-- Raises FL031 for ticks that cannot be.
-- roles: worker
create or replace function fenceline.fire_schedule(
  p_name text,
  p_revision bigint,
  p_expected timestamptz,
  p_until timestamptz,
  p_ticks timestamptz[],
  p_outcomes text[],
  p_from timestamptz[],
  p_next timestamptz
) returns integer
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_now timestamptz := fenceline.clock();
  v_schedule fenceline.schedule;
  v_tick record;
  v_job_id bigint;
  v_created boolean;
  v_last_at timestamptz;
  v_last_job bigint;
  v_fired integer := 0;
begin
  select * into v_schedule from fenceline.schedule s
  where s.name = p_name and s.revision = p_revision and s.next_at is not distinct from p_expected
    and s.due_at <= v_now and p_until <= v_now  -- else the clock was set back
  for update skip locked;
  if not found then
    return null;
  end if;
  if p_until < v_schedule.settled_at or p_next <= p_until
     or exists (select 1 from unnest(p_ticks) t where t > p_until or t <= v_schedule.settled_at or t is null) then
    raise exception using errcode = 'FL031',
      message = format('ticks of schedule %L must lie after %s and up to %s, the next one after that', p_name,
                       v_schedule.settled_at, p_until);
  end if;

  for v_tick in
    select t.tick_at, t.outcome, t.from_at
    from unnest(p_ticks, p_outcomes, p_from) t(tick_at, outcome, from_at) order by t.tick_at
  loop
    insert into fenceline.schedule_tick (schedule, tick_at, outcome, decided_at, from_at)
    values (p_name, v_tick.tick_at, case v_tick.outcome when 'fire' then 'fired' else v_tick.outcome end, v_now,
            v_tick.from_at)
    on conflict do nothing;
    if not found or v_tick.outcome <> 'fire' then
      continue;
    end if;
    begin
      select e.job_id, e.created into v_job_id, v_created
      from fenceline.enqueue_scheduled(v_schedule, v_tick.tick_at) e;
      v_fired := v_fired + v_created::integer;
      v_last_at := v_tick.tick_at;
      v_last_job := v_job_id;
      update fenceline.schedule_tick t
      set job_id = v_job_id, outcome = case when v_created then 'fired' else 'deduplicated' end
      where t.schedule = p_name and t.tick_at = v_tick.tick_at;
    exception when others then
      if sqlstate not like 'FL%' then
        raise;
      end if;
      update fenceline.schedule_tick t set outcome = 'refused', error = sqlerrm
      where t.schedule = p_name and t.tick_at = v_tick.tick_at;
    end;
  end loop;

  update fenceline.schedule s
  set settled_at = p_until, next_at = p_next, due_at = coalesce(p_next, 'infinity'), error = null,
      last_at = coalesce(v_last_at, s.last_at), last_job = coalesce(v_last_job, s.last_job)
  where s.name = p_name;
  return v_fired;
end;
$$;
--- file: functions/fire_trigger.sql
-- Enqueues the job of a trigger, for a request whose signature has been checked; once per signature.
--
-- p_signature   of the request: seen again within twice the window, it is a replay
-- p_args        as trigger_args made them, and as the handler has checked them where it is known
-- p_idempotency_key, p_dedupe_key   from the request's headers
-- Returns as submit_job. Raises FL047, FL049 (replay), and what an enqueue raises; then nothing has changed, and the
-- request may be sent again.
-- roles: admin
create or replace function fenceline.fire_trigger(
  p_name text,
  p_tenant text,
  p_signature bytea,
  p_args json,
  p_idempotency_key text default null,
  p_dedupe_key text default null,
  p_defaults json default null,
  out id text,
  out created boolean,
  out job jsonb
)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_trigger fenceline.trigger;
  v_now timestamptz := fenceline.clock();
  v_options jsonb;
begin
  select * into v_trigger from fenceline.trigger t where t.name = p_name and t.tenant = p_tenant and t.enabled;
  if not found then
    raise exception using errcode = 'FL047', message = format('trigger %L does not exist', left(p_name, 80));
  end if;
  -- Waits for a rival with the same signature, and then knows.
  insert into fenceline.trigger_seen (tenant, name, signature, until)
  values (p_tenant, p_name, p_signature, v_now + make_interval(secs => 2 * v_trigger.window_seconds))
  on conflict do nothing;
  if not found then
    raise exception using errcode = 'FL049', message = 'this very request has been accepted before';
  end if;
  v_options := v_trigger.options || jsonb_strip_nulls(jsonb_build_object(
    'idempotency_key', 'trigger:' || p_name || ':' || p_idempotency_key, 'dedupe_key', p_dedupe_key));
  select s.id, s.created, s.job into fire_trigger.id, fire_trigger.created, fire_trigger.job
  from fenceline.submit_job(v_trigger.kind, p_args, v_options::json, 'trigger:' || p_name, p_defaults, p_tenant) s;
  if v_trigger.fired_at is null or v_trigger.fired_at < v_now - interval '1 minute' then  -- coarse, as of tokens
    update fenceline.trigger t set fired_at = v_now where t.name = p_name and t.tenant = p_tenant;
  end if;
end;
$$;
--- file: functions/follow_jobs.sql
-- Asks for a notification (`fenceline_changed`) whenever something about these jobs changes, for so many seconds. 0 stands
-- for every job: what happens goes to the journal, without notifications.
-- Returns this transaction's number: changes by transactions that were open before it may go unannounced (is_settled tells
-- when those are over).
-- roles: admin
create or replace function fenceline.follow_jobs(p_job_ids bigint[], p_seconds double precision default 60)
returns text
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  if 0 = any(p_job_ids)
     and not exists (select 1 from fenceline.follow f where f.job_id = 0 and f.until > fenceline.clock()) then
    -- It was off: what it has is not continued by what comes. The place that is left out says so to who comes back.
    delete from fenceline.journal;
    perform nextval('fenceline.journal_position');
  end if;
  insert into fenceline.follow (job_id, until)
  select distinct i, fenceline.clock() + make_interval(secs => p_seconds) from unnest(p_job_ids) i order by i
  on conflict (job_id) do update set until = greatest(follow.until, excluded.until);
  return pg_current_xact_id()::text;
end;
$$;
--- file: functions/forget_details.sql
-- Removes what is kept beside `job` and `history` of the jobs from p_from to below p_to, but for those in p_except: at most
-- p_limit rows of each table. Returns whether that was all.
-- roles: none
create or replace function fenceline.forget_details(p_from bigint, p_to bigint, p_except bigint[], p_limit integer)
returns boolean
language plpgsql as $$
declare
  v_count integer;
  v_most integer := 0;
begin
  delete from fenceline.log where ctid = any(array(
    select t.ctid from fenceline.log t
    where t.job_id >= p_from and t.job_id < p_to and t.job_id <> all (p_except) limit p_limit));
  get diagnostics v_count = row_count;
  v_most := greatest(v_most, v_count);
  delete from fenceline.progress where ctid = any(array(
    select t.ctid from fenceline.progress t
    where t.job_id >= p_from and t.job_id < p_to and t.job_id <> all (p_except) limit p_limit));
  get diagnostics v_count = row_count;
  v_most := greatest(v_most, v_count);
  delete from fenceline.step where ctid = any(array(
    select t.ctid from fenceline.step t
    where t.job_id >= p_from and t.job_id < p_to and t.job_id <> all (p_except) limit p_limit));
  get diagnostics v_count = row_count;
  v_most := greatest(v_most, v_count);
  delete from fenceline.checkpoint where ctid = any(array(
    select t.ctid from fenceline.checkpoint t
    where t.job_id >= p_from and t.job_id < p_to and t.job_id <> all (p_except) limit p_limit));
  get diagnostics v_count = row_count;
  v_most := greatest(v_most, v_count);
  return v_most < p_limit;
end;
$$;
--- file: functions/forget_jobs.sql
-- Removes every row of finished jobs.
-- roles: none
create or replace function fenceline.forget_jobs(p_job_ids bigint[]) returns void
language plpgsql as $$
begin
  delete from fenceline.log where job_id = any(p_job_ids);
  delete from fenceline.progress where job_id = any(p_job_ids);
  delete from fenceline.step where job_id = any(p_job_ids);
  delete from fenceline.checkpoint where job_id = any(p_job_ids);
  -- Final rows and the others are in an index of their own each.
  delete from fenceline.history where job_id = any(p_job_ids) and final;
  delete from fenceline.history where job_id = any(p_job_ids) and not final;
  delete from fenceline.job where id = any(p_job_ids);
end;
$$;
--- file: functions/free_keys.sql
-- Gives back the keys of ended jobs, and asks for a look at each: the next job is admitted by admit_keys.
-- roles: none
create or replace function fenceline.free_keys(p_job_ids bigint[]) returns void
language plpgsql as $$
declare
  v_lanes text[];
begin
  with freed as (
    delete from fenceline.key_holder where job_id = any(p_job_ids) returning tenant, key
  ), asked as (
    insert into fenceline.key_check (id, tenant, key)
    select fenceline.next_id(), d.tenant, d.key from (select distinct f.tenant, f.key from freed f) d
  )
  select array_agg(distinct h.lane) into v_lanes
  from (select distinct f.tenant, f.key from freed f) d
  cross join lateral (
    select lane from fenceline.held h
    where h.waiting_for = 'key' and h.tenant = d.tenant and h.key = d.key
    order by h.priority desc, h.seq limit 1) h;
  if v_lanes is not null then
    perform fenceline.wake(v_lanes);
  end if;
end;
$$;
--- file: functions/guard_newer.sql
-- Announces that a live attempt is about to write a version of a resource. Returns false when a newer version was
-- announced before: whoever gets that must not write. The same version again is fine.
--
-- What follows must not let a newer one in between: hold a lock of the resource, or call this in the transaction that
-- writes.
-- Raises FL012, FL007.
-- roles: worker
create or replace function fenceline.guard_newer(
  p_job_id bigint,
  p_attempt_id uuid,
  p_resource text,
  p_version numeric
) returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  if p_resource is null or length(p_resource) not between 1 and 500 
     or p_version is null or p_version in ('NaN', 'Infinity', '-Infinity') then
    raise exception using errcode = 'FL007',
      message = format('guard %L with version %s is not valid: use a resource of 1 to 500 characters and a number',
                       left(p_resource, 80), p_version);
  end if;
  perform fenceline.live_attempt(p_job_id, p_attempt_id);
  insert into fenceline.guard as g (tenant, resource, version, job_id, at)
  select j.tenant, p_resource, p_version, p_job_id, fenceline.clock() from fenceline.job j where j.id = p_job_id
  on conflict (tenant, resource) do update set version = excluded.version, job_id = excluded.job_id, at = excluded.at
    where g.version <= excluded.version;
  return found;
end;
$$;
--- file: functions/has_open_reference.sql
-- Whether an "after" option names a job of the same call that has not been made yet.
-- roles: none
create or replace function fenceline.has_open_reference(p_after jsonb, p_refs jsonb) returns boolean
language sql immutable parallel safe as $$
  select exists (
    select 1 from jsonb_array_elements_text(fenceline.after_list(p_after)) a
    where a like '@%' and not p_refs ? a);
$$;
--- file: functions/heartbeat.sql
-- Renews the leases of workers and tells them what they must know.
--
-- p_held      attempts that the (single) worker knows of. Given: attempts of its own that it does not name and that
--             were claimed before its previous list are released (the reply of the claim was lost), and attempts
--             that it names and that are gone are reported. A heartbeat without a list is no sign that replies are read:
--             it may be sent by a helper beside a process that is busy.
-- Returns one row per word: `lost` (the worker's lease ended and its attempts were reclaimed: register again), `cancel`
-- (the handler is asked to stop), `stale` (the attempt is gone: stop, nothing it writes will be accepted).
-- Lock order: worker rows, running rows.
-- roles: worker
create or replace function fenceline.heartbeat(p_worker_ids integer[], p_held uuid[] default null)
returns table (worker_id integer, job_id bigint, attempt_id uuid, word text)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_now timestamptz := fenceline.clock();
  v_before timestamptz;
  v_run fenceline.running;
begin
  if p_held is not null then
    if cardinality(p_worker_ids) <> 1 then
      raise exception using errcode = 'FL007', message = 'held attempts are given for one worker at a time';
    end if;
    select w.listed_at into v_before from fenceline.worker w where w.id = p_worker_ids[1];
  end if;

  return query
  with beating as (
    select w.id from fenceline.worker w
    where w.id = any(p_worker_ids) and w.stopped_at is null order by w.id for no key update
  ), renewed as (
    update fenceline.worker w
    set heartbeat_at = v_now, lease_until = v_now + make_interval(secs => w.lease_seconds),
        listed_at = case when p_held is null then w.listed_at else v_now end
    where w.id in (select b.id from beating b)
    returning w.id
  )
  select i, null::bigint, null::uuid, 'lost' from unnest(p_worker_ids) i
  where i not in (select n.id from renewed n);

  return query
  select r.worker_id, r.job_id, r.attempt_id, 'cancel'
  from fenceline.running r where r.worker_id = any(p_worker_ids) and r.cancel_deadline is not null;

  if p_held is not null then
    return query
    select p_worker_ids[1], null::bigint, h, 'stale' from unnest(p_held) h
    where not exists (
      select 1 from fenceline.running r where r.worker_id = p_worker_ids[1] and r.attempt_id = h);
    for v_run in
      delete from fenceline.running r
      where r.worker_id = p_worker_ids[1] and r.attempt_id <> all(p_held) and r.claimed_at < v_before
      returning r.*
    loop
      perform fenceline.settle_if_final(v_run, fenceline.end_attempt(v_run, 'released', p_metadata => '{"reason": "unknown to its worker"}'));
    end loop;
  end if;
end;
$$;
--- file: functions/hold_job.sql
-- Puts a job into `held`, for approval or for its dependencies.
-- roles: none
create or replace function fenceline.hold_job(p_live fenceline.live, p_waiting_for text, p_pending integer)
returns void
language plpgsql as $$
begin
  insert into fenceline.held (job_id, seq, priority, lane, kind, tenant, waiting_for, pending, number, token, deaths,
                              uses, run_at)
  values (p_live.job_id, p_live.seq, p_live.priority, p_live.lane, p_live.kind, p_live.tenant, p_waiting_for, p_pending,
          p_live.number, p_live.token, p_live.deaths, p_live.uses, p_live.run_at);
  if exists (select 1 from fenceline.follow) then
    perform fenceline.tell_followers(array[p_live.job_id]);
  end if;
end;
$$;
--- file: functions/id_at.sql
-- The lowest id of a moment: milliseconds since 2024-01-01 UTC in the high 41 bits (until 2093), 22 bits of sequence.
-- Stable, not immutable and not strict, though it is both: extract() is stable, and only so can the planner inline it,
-- which saves 50 µs of every enqueue.
-- roles: none
create or replace function fenceline.id_at(p_at timestamptz) returns bigint
language sql stable parallel safe as $$
  select (floor(extract(epoch from p_at) * 1000)::bigint - 1704067200000) << 22;
$$;
--- file: functions/id_time.sql
-- When an id was made, to the millisecond: the inverse of id_at. A job's created_at is not stored twice.
-- roles: reader
create or replace function fenceline.id_time(p_id bigint) returns timestamptz
language sql immutable strict parallel safe as $$
  select to_timestamp(((p_id >> 22) + 1704067200000) / 1000.0);
$$;
--- file: functions/inherit_work.sql
-- Gives a new job the steps and the checkpoint of the one that it retries: what is done is not done again.
-- roles: none
create or replace function fenceline.inherit_work(p_from bigint, p_to bigint) returns void
language sql as $$
  insert into fenceline.step (job_id, name, position, status, args_hash, result, error, token, ran_seconds, ended_at)
  select p_to, s.name, s.position, s.status, s.args_hash, s.result, s.error, s.token, s.ran_seconds, s.ended_at
  from fenceline.step s where s.job_id = p_from;
  insert into fenceline.checkpoint (job_id, state, token, updated_at)
  select p_to, c.state, c.token, c.updated_at from fenceline.checkpoint c where c.job_id = p_from;
$$;
--- file: functions/insert_gated_job.sql
-- Makes one job that uses a gate, a key or a lock; p_job is complete, but may lack its id. A job that no gate of its own
-- holds is returned in `passed`: the caller places it, with the others of its call.
--
-- Order: idempotency key, dedupe key, resource lock, job, dependencies, then the first unmet gate: approval,
-- dependencies, and the rest by place_jobs. Each unique row is inserted with "on conflict do nothing", which waits for
-- an uncommitted rival and then says who won.
-- Raises FL008 (dependency missing), FL013 (resource locked), FL020 (empty group).
-- roles: none
create or replace function fenceline.insert_gated_job(
  p_job fenceline.job,
  p_after jsonb,
  out job_id bigint,
  out created boolean,
  out passed fenceline.live
)
language plpgsql as $$
declare
  v_now timestamptz := fenceline.clock();
  v_after bigint[];
  v_pending bigint[];
  v_failed bigint;
  v_live fenceline.live;
  v_uses smallint := 0;
  v_seq bigint;
begin
  v_seq := fenceline.next_id();
  p_job.id := coalesce(p_job.id, v_seq);  -- a child's was given out before
  created := false;

  if p_job.idempotency_key is not null then
    job_id := fenceline.take_idempotency_key(p_job.tenant, p_job.idempotency_key, p_job.id, v_now);
    if job_id <> p_job.id then
      return;
    end if;
  end if;
  if p_job.dedupe_key is not null then
    job_id := fenceline.take_dedupe_key(p_job.tenant, p_job.dedupe_key, p_job.id);
    if job_id <> p_job.id then
      -- Sent again, the same request must find the job that it was answered with.
      update fenceline.idempotency i set job_id = insert_gated_job.job_id
      where i.tenant = p_job.tenant and i.key = p_job.idempotency_key;
      return;
    end if;
    v_uses := v_uses | 1;
  end if;
  job_id := p_job.id;
  created := true;
  if p_job.resource_lock is not null then
    perform fenceline.take_resource_lock(p_job.tenant, p_job.resource_lock, p_job.id);
    v_uses := v_uses | 2;
  end if;
  if p_job.key is not null then
    v_uses := v_uses | 4;
  end if;
  if p_job.expires_at is not null then
    v_uses := v_uses | 16;
    insert into fenceline.deadline (job_id, expires_at) values (p_job.id, p_job.expires_at);
  end if;
  if p_job.requires_hash is not null then
    v_uses := v_uses | 32;
  end if;

  if p_job.after_policy is not null then
    v_after := fenceline.read_after(p_job.tenant, p_after);
    p_job.after := v_after;
  end if;
  insert into fenceline.job select p_job.*;

  v_live := row(p_job.id, v_seq, p_job.priority, p_job.lane, p_job.kind, p_job.tenant, null, null, null,
                nullif(v_uses, 0), p_job.run_at)::fenceline.live;
  if v_after is not null then
    select array_agg(a.id order by a.id) filter (where h.outcome is null),
           min(a.id) filter (where h.outcome not in ('succeeded', 'succeeded_with_errors'))
      into v_pending, v_failed
    from unnest(v_after) a(id)
    left join fenceline.history h on h.job_id = a.id and h.final;
    insert into fenceline.dependency (after_id, waiter_id) select i, p_job.id from unnest(v_pending) i;
    if v_pending is not null then
      insert into fenceline.dependency_check (waiter_id) values (p_job.id);
    end if;
  end if;

  if v_failed is not null and p_job.after_policy = 'success' then
    -- Through `held`, so that one function ends it.
    perform fenceline.hold_job(v_live, 'dependencies', coalesce(cardinality(v_pending), 0));
    perform fenceline.end_waiting(array[p_job.id], 'cancelled', fenceline.dependency_error(v_failed), null);
  elsif p_job.needs_approval then
    perform fenceline.hold_job(v_live, 'approval', coalesce(cardinality(v_pending), 0));
  elsif v_pending is not null then
    perform fenceline.hold_job(v_live, 'dependencies', cardinality(v_pending));
  else
    passed := v_live;
  end if;
end;
$$;
--- file: functions/insert_jobs.sql
-- Makes jobs of one kind with the same options: the core of enqueue, enqueue_many, enqueue_jobs and retry_job.
--
-- Jobs without a gate take two set-based inserts (job, ready). A job that uses a gate or a key is made one at a time by
-- insert_gated_job. Locks: none, but for the unique rows that dedupe, idempotency and resource_lock insert.
-- p_ids: ids that were given out before (add_children); null: new ones.
-- roles: none
create or replace function fenceline.insert_jobs(
  p_kind text,
  p_args json[],
  p_options json,
  p_actor text,
  p_defaults json,
  p_origin text,
  p_ids bigint[] default null,
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
  v_made record;
  v_passed fenceline.live[] := '{}';
begin
  if p_defaults is not null then
    perform fenceline.check_defaults(p_kind, p_defaults);
  end if;
  perform fenceline.check_name('kind', p_kind);
  if p_origin is null or p_origin not in ('outside', 'child', 'schedule') then
    raise exception using errcode = 'FL007',
      message = format('origin %L is unknown: use outside, child or schedule', p_origin);
  end if;
  perform fenceline.to_jsonb_checked(format('args of kind %L', p_kind), a) from unnest(p_args) a
  where fenceline.is_suspicious(a::text);
  if not v_plain then
    v_options := fenceline.to_jsonb_checked(format('options of kind %L', p_kind), p_options);
    v_job := fenceline.read_options(p_kind, v_options);
    v_plain := not fenceline.is_gated(v_job);
  end if;

  select s.draining, s.limits_tenants and p_origin = 'outside' as limited, s.max_args_bytes,
         coalesce(v_job.lane, k.lane, p_defaults ->> 'lane', k.default_lane, 'default') as lane,
         n.name as known_lane, n.ageing_seconds, nullif(n.fair, false) as fair,
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

  if not v_plain then
    v_job.kind := p_kind;
    v_job.tenant := coalesce(v_job.tenant, 'default');
    v_job.created_by := p_actor;
    v_job.lane := v_route.lane;
    v_job.priority := v_route.priority;
    v_job.max_attempts := v_route.max_attempts;
    v_job.timeout_seconds := v_route.timeout;
    v_job.retry := v_route.retry;
    for v_i in 1 .. v_count loop
      v_job.args := p_args[v_i];
      v_job.id := p_ids[v_i];
      if v_count > 1 and v_options ? 'idempotency_key' then
        v_job.idempotency_key := (v_options ->> 'idempotency_key') || '#' || v_i;  -- one key per job of the call
      end if;
      select * into v_made from fenceline.insert_gated_job(v_job, v_options -> 'after');
      job_ids[v_i] := v_made.job_id;
      created[v_i] := v_made.created;
      if (v_made.passed).job_id is not null then
        v_passed := v_passed || v_made.passed;
      end if;
    end loop;
    if cardinality(v_passed) > 0 then
      perform fenceline.place_jobs(v_passed);  -- all at once: a key is asked for once, a lane woken once
    end if;
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
  insert into fenceline.job (id, priority, max_attempts, kind, lane, tenant, args, labels, created_by, timeout_seconds,
                             identity, group_name, retry, retry_of, parent, snapshot, snapshot_hash, delivery,
                             traceparent)
  select n.id, v_route.priority, v_route.max_attempts, p_kind, v_route.lane, coalesce(v_job.tenant, 'default'), n.args,
         v_job.labels, p_actor, v_route.timeout, v_job.identity, v_job.group_name, v_route.retry, v_job.retry_of,
         v_job.parent, v_job.snapshot, v_job.snapshot_hash, v_job.delivery, v_job.traceparent
  from unnest(job_ids, p_args) n(id, args);
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
--- file: functions/is_due.sql
-- True when a task of maintenance has not run for so long anywhere; notes that it runs now. One caller gets true.
-- roles: none
create or replace function fenceline.is_due(p_task text, p_seconds double precision) returns boolean
language plpgsql as $$
declare
  v_now timestamptz := fenceline.clock();
  v_ran timestamptz;
begin
  select m.ran_at into v_ran from fenceline.maintenance m where m.task = p_task;
  if not found then
    insert into fenceline.maintenance (task, ran_at) values (p_task, v_now) on conflict do nothing;
    return found;
  end if;
  if v_ran > v_now - make_interval(secs => p_seconds) then
    return false;
  end if;
  perform 1 from fenceline.maintenance m where m.task = p_task and m.ran_at = v_ran for update skip locked;
  if not found then
    return false;
  end if;
  update fenceline.maintenance set ran_at = v_now where task = p_task;
  return true;
end;
$$;
--- file: functions/is_erased.sql
-- Whether args are what erase_args leaves.
-- roles: none
create or replace function fenceline.is_erased(p_args json) returns boolean
language sql immutable as $$
  select coalesce(json_typeof(p_args) = 'object' and json_typeof(p_args -> '$erased') = 'object', false);
$$;
--- file: functions/is_gated.sql
-- Whether a new job meets a gate or takes a key, so that it cannot go straight to `ready`.
-- roles: none
create or replace function fenceline.is_gated(p_job fenceline.job) returns boolean
language sql immutable parallel safe as $$
  select p_job.run_at is not null or p_job.expires_at is not null or p_job.dedupe_key is not null
      or p_job.idempotency_key is not null or p_job.resource_lock is not null or p_job.key is not null
      or p_job.needs_approval or p_job.requires_hash is not null or p_job.after is not null
      or p_job.after_policy is not null;
$$;
--- file: functions/is_scan_due.sql
-- True about once a second per lane and fleet: then a claim looks below the workers' lower bounds, for jobs that were
-- committed late or given back.
-- roles: none
create or replace function fenceline.is_scan_due(p_lane text, p_now timestamptz) returns boolean
language plpgsql as $$
declare
  v_scanned timestamptz;
begin
  select s.scanned_at into v_scanned from fenceline.lane_state s where s.lane = p_lane;
  if v_scanned > p_now - interval '1 second' then
    return false;
  end if;
  if not found then
    insert into fenceline.lane_state (lane, scanned_at) values (p_lane, p_now) on conflict do nothing;
    return true;
  end if;
  perform 1 from fenceline.lane_state s
  where s.lane = p_lane and (s.scanned_at is null or s.scanned_at <= p_now - interval '1 second')
  for update skip locked;
  if not found then
    return false;
  end if;
  update fenceline.lane_state set scanned_at = p_now where lane = p_lane;
  return true;
end;
$$;
--- file: functions/is_suspicious.sql
-- Whether JSON text may hold what jsonb, or a reader of it, chokes on: \u0000 or half a surrogate pair; a number so large
-- that the cast fails, or that a few bytes become thousands of digits. One such job would spoil every list it is on.
-- A look at the text, no proof: the caller reads it as jsonb to see.
-- roles: none
create or replace function fenceline.is_suspicious(p_text text) returns boolean
language sql immutable parallel safe as $$
  select p_text ~ '\\u|[0-9][eE][-+]?[0-9]{4}' or octet_length(p_text) > 131072
$$;
--- file: functions/job_status.sql
-- Where a job's row is, says what it is; null: there is no such job.
-- roles: none
create or replace function fenceline.job_status(p_job_id bigint) returns text
language sql stable as $$
  select case
    when exists (select 1 from fenceline.ready r where r.job_id = p_job_id) then 'queued'
    when exists (select 1 from fenceline.running r where r.job_id = p_job_id) then
      (select case when r.started_at is null then 'claimed' else 'running' end
       from fenceline.running r where r.job_id = p_job_id)
    when exists (select 1 from fenceline.timer t where t.job_id = p_job_id) then 'scheduled'
    when exists (select 1 from fenceline.held h where h.job_id = p_job_id) then
      (select case when h.waiting_for = 'approval' then 'awaiting_approval' else 'waiting' end
       from fenceline.held h where h.job_id = p_job_id)
    else (select h.outcome from fenceline.history h where h.job_id = p_job_id and h.final) end;
$$;
--- file: functions/key_lock.sql
-- The number of a key's admission lock. Advisory lock classes: 1179926085 lanes, 1179926086 keys, 1179926087 upkeep.
-- roles: none
create or replace function fenceline.key_lock(p_tenant text, p_key text) returns integer
language sql immutable parallel safe as $$
  select hashtext(p_tenant || '/' || p_key);
$$;
--- file: functions/known_permissions.sql
-- Every permission that a role may have; the server's routes ask for these.
-- roles: none
create or replace function fenceline.known_permissions() returns text[]
language sql immutable parallel safe as $$
  select array['jobs:read', 'jobs:read_all', 'jobs:enqueue', 'jobs:cancel', 'jobs:approve', 'workers:view', 'workers:manage',
               'schedules:manage', 'hooks:manage', 'runners:claim', 'audit:read', 'tokens:manage', 'system:manage'];
$$;
--- file: functions/lane_json.sql
-- A lane's settings as JSON, with the kinds it lists.
-- roles: none
create or replace function fenceline.lane_json(p_lane fenceline.lane) returns jsonb
language sql stable as $$
  select to_jsonb(p_lane) || jsonb_build_object('kinds', coalesce(
    (select jsonb_agg(k.name order by k.name) from fenceline.kind k where k.lane = p_lane.name), '[]'));
$$;
--- file: functions/leads_back.sql
-- Whether a wait for the block p_owner can never end: it, or a block that it waits for inside, and so on, is one of
-- p_holding. Only live attempts count; null waits for nobody.
-- roles: none
create or replace function fenceline.leads_back(p_owner uuid, p_holding uuid[]) returns boolean
language sql stable as $$
  with recursive blocked (owner) as (
    select p_owner
    union
    select l.owner
    from blocked b
    join fenceline.lock_wait w on b.owner = any(w.holding)
    join fenceline.running r on r.job_id = w.job_id and r.attempt_id = w.attempt_id
    join fenceline.attempt_lock l on l.tenant = w.tenant and l.namespace = w.namespace and l.name = w.name
  )
  select exists (select 1 from blocked b where b.owner = any(p_holding));
$$;
--- file: functions/list_steps_ahead.sql
-- Names steps of a live attempt before they run, so that people see what is to come and in which order. Steps that are
-- there already keep what they are.
-- Raises FL012, FL007.
-- roles: worker
create or replace function fenceline.list_steps_ahead(p_job_id bigint, p_attempt_id uuid, p_names text[]) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform fenceline.check_step_name(n) from unnest(p_names) n;
  perform fenceline.live_attempt(p_job_id, p_attempt_id);
  insert into fenceline.step (job_id, name, position, status)
  select p_job_id, n.name, min(n.position), 'listed' from unnest(p_names) with ordinality n(name, position)
  group by n.name
  on conflict (job_id, name) do update set position = excluded.position;
end;
$$;
--- file: functions/live_attempt.sql
-- The live attempt, locked until the transaction ends: a reclaim waits for us, or we find nothing. It also counts as a
-- sign of life for the lane's stale rule. Raises FL012 when the attempt is gone.
-- Lock order: the running row.
-- roles: none
create or replace function fenceline.live_attempt(p_job_id bigint, p_attempt_id uuid) returns fenceline.running
language plpgsql as $$
declare
  v_run fenceline.running;
begin
  update fenceline.running r set active_at = fenceline.clock()
  where r.job_id = p_job_id and r.attempt_id = p_attempt_id returning r.* into v_run;
  if not found then
    raise exception using errcode = 'FL012',
      message = format('attempt %s of job %s is gone: nothing was changed', p_attempt_id, fenceline.public_id(p_job_id)),
      hint = 'It was reclaimed, cancelled or finished; whoever holds the job now decides.';
  end if;
  return v_run;
end;
$$;
--- file: functions/maintain.sql
-- What has to happen at least once a second somewhere, for the whole fleet: any worker or server may call it as often
-- as it likes, the work is done once per interval. `upkeep` is the other half, about once a minute.
-- Returns counts of what was done, `schedules_due` (fire_schedule is for a program that can compute ticks),
-- `limits_tenants` (then call count_tenants, which may take its time, in a transaction of its own), and `next_seconds`,
-- when the next timer or schedule is due (null: there is none); null when the work itself was not due.
-- roles: worker
create or replace function fenceline.maintain(p_interval_seconds double precision default 0.5) returns jsonb
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_done jsonb;
begin
  if not fenceline.is_due('live', p_interval_seconds) then
    return null;
  end if;
  v_done := jsonb_build_object(
    'swept', fenceline.sweep(),
    'promoted', fenceline.promote_timers(),
    'expired', fenceline.expire_jobs(),
    'verified', fenceline.verify_dependencies(),
    'admitted', fenceline.admit_keys());
  v_done := v_done || jsonb_build_object(
    'limits_tenants', (select s.limits_tenants from fenceline.setting s),
    'schedules_due', (select count(*) from fenceline.schedule s where s.due_at <= fenceline.clock()),
    'next_seconds', (
      select extract(epoch from min(n.at) - fenceline.clock())
      from (select min(t.run_at) from fenceline.timer t
            union all
            select min(s.due_at) from fenceline.schedule s
            where s.due_at > fenceline.clock() and s.due_at < 'infinity') n(at)));
  return v_done;
end;
$$;
--- file: functions/make_children.sql
-- Makes the jobs that attempts asked for (add_children), in the transaction that ended them well. A system drain lets
-- them through. Where a key belongs to another job by now, that job takes the child's place, also for its siblings that
-- wait for it.
-- Raises as enqueue does; then the attempt has not ended either.
-- roles: none
create or replace function fenceline.make_children(p_job_ids bigint[], p_attempt_ids uuid[]) returns void
language plpgsql as $$
declare
  v_child fenceline.child;
  v_actor text;
  v_options jsonb;
  v_made record;
  v_instead jsonb := '{}';
begin
  for v_child in
    select c.* from fenceline.child c
    where c.job_id = any(p_job_ids) and c.attempt_id = any(p_attempt_ids)
    order by c.job_id, c.position
  loop
    select j.created_by into v_actor from fenceline.job j where j.id = v_child.job_id;
    v_options := v_child.options;
    if v_instead <> '{}' and v_options ? 'after' then
      v_options := v_options || jsonb_build_object('after', fenceline.replace_after(v_options -> 'after', v_instead));
    end if;
    v_made := fenceline.insert_jobs(v_child.kind, v_child.args, v_options::json, v_actor, v_child.defaults, 'child',
                                    v_child.ids);
    if v_made.job_ids <> v_child.ids then
      v_instead := v_instead || (select jsonb_object_agg(given::text, fenceline.public_id(made))
                                 from unnest(v_child.ids, v_made.job_ids) n(given, made) where given <> made);
    end if;
  end loop;
  delete from fenceline.child c where c.job_id = any(p_job_ids);
end;
$$;
--- file: functions/move_items.sql
-- Moves items of a live attempt's progress into one of the sets in_progress, completed, skipped (with a reason) and failed
-- (with an error), out of whichever they were in. The row lock makes moves of concurrent coroutines atomic.
--
-- p_why       reason or error, for skipped and failed
-- Returns how many items each set has. Raises FL012, FL007, FL005.
-- roles: worker
create or replace function fenceline.move_items(
  p_job_id bigint,
  p_attempt_id uuid,
  p_to text,
  p_items text[],
  p_why text default null
) returns jsonb
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_progress jsonb;
  v_items jsonb;
  v_moved jsonb;
begin
  if p_to is null or p_to not in ('in_progress', 'completed', 'skipped', 'failed') then
    raise exception using errcode = 'FL007',
      message = format('items cannot be moved to %L: use in_progress, completed, skipped or failed', p_to);
  end if;
  if exists (select 1 from unnest(p_items) i where i is null or length(i) not between 1 and 500) then
    raise exception using errcode = 'FL007', message = 'an item needs a name of 1 to 500 characters';
  end if;
  perform fenceline.live_attempt(p_job_id, p_attempt_id);
  insert into fenceline.progress as p (job_id, attempt_id, updated_at)
  values (p_job_id, p_attempt_id, fenceline.clock())
  on conflict (job_id) do update set
    attempt_id = excluded.attempt_id, updated_at = excluded.updated_at,
    phase = case when p.attempt_id = excluded.attempt_id then p.phase end,
    progress = case when p.attempt_id = excluded.attempt_id then p.progress end
  returning coalesce(p.progress, '{}') into v_progress;

  v_items := jsonb_build_object('in_progress', '[]'::jsonb, 'completed', '[]'::jsonb, 'skipped', '[]'::jsonb,
                                'failed', '[]'::jsonb) || coalesce(v_progress -> 'items', '{}');
  select jsonb_object_agg(s.key, coalesce((
           select jsonb_agg(e.item order by e.n) from jsonb_array_elements(s.value) with ordinality e(item, n)
           where (case when jsonb_typeof(e.item) = 'object' then e.item ->> 'item' else e.item #>> '{}' end) <> all(p_items)),
         '[]'::jsonb))
    into v_items
  from jsonb_each(v_items) s;
  select coalesce(jsonb_agg(case p_to
           when 'skipped' then jsonb_build_object('item', i, 'reason', p_why)
           when 'failed' then jsonb_build_object('item', i, 'error', p_why)
           else to_jsonb(i) end order by n), '[]')
    into v_moved
  from (select distinct on (i) i, n from unnest(p_items) with ordinality u(i, n)) d;
  v_items := jsonb_set(v_items, array[p_to], (v_items -> p_to) || v_moved);
  v_progress := v_progress || jsonb_build_object('items', v_items);
  perform fenceline.check_size('the progress', v_progress);
  update fenceline.progress set progress = v_progress where job_id = p_job_id;
  if exists (select 1 from fenceline.follow) then
    perform fenceline.tell_followers(array[p_job_id]);
  end if;
  return (select jsonb_object_agg(s.key, jsonb_array_length(s.value)) from jsonb_each(v_items) s);
end;
$$;
--- file: functions/move_kinds.sql
-- Makes p_kinds the list of a lane's kinds, and moves the unclaimed jobs of kinds that are new in it.
-- Caller holds the lane's lock. Queued jobs move through place_jobs, because their rank belongs to the lane.
-- roles: none
create or replace function fenceline.move_kinds(p_lane text, p_kinds jsonb) returns void
language plpgsql as $$
declare
  v_kinds text[];
  v_new text[];
  v_kind text;
  v_moved fenceline.live[];
begin
  if jsonb_typeof(p_kinds) <> 'array' then
    raise exception using errcode = 'FL018', message = format('kinds of lane %L must be a list of names', p_lane);
  end if;
  v_kinds := array(select distinct k from jsonb_array_elements_text(p_kinds) k order by k);
  foreach v_kind in array v_kinds loop
    perform fenceline.check_name('kind', v_kind);
  end loop;
  v_new := array(
    select k from unnest(v_kinds) k
    where not exists (select 1 from fenceline.kind n where n.name = k and n.lane = p_lane) order by k);
  update fenceline.kind n set lane = null where n.lane = p_lane and n.name <> all(v_kinds);
  insert into fenceline.kind (name, lane) select k, p_lane from unnest(v_new) k
  on conflict (name) do update set lane = excluded.lane;

  with gone as (
    delete from fenceline.ready r where r.kind = any(v_new) and r.lane <> p_lane returning r.*
  )
  select array_agg(row(g.job_id,
                       fenceline.aged_seq(g.seq, -coalesce(g.own_priority, 0), n.ageing_seconds),
                       coalesce(g.own_priority, g.priority), p_lane, g.kind, g.tenant, g.number, g.token, g.deaths,
                       g.uses, null)::fenceline.live)
    into v_moved
  from gone g join fenceline.lane n on n.name = g.lane;
  if v_moved is not null then
    perform fenceline.place_jobs(v_moved);
  end if;
  update fenceline.timer t set lane = p_lane where t.kind = any(v_new) and t.lane <> p_lane;
  update fenceline.held h set lane = p_lane where h.kind = any(v_new) and h.lane <> p_lane;
end;
$$;
--- file: functions/next_id.sql
-- A fresh time-ordered id; also the `seq` of a job that becomes claimable again.
-- roles: none
create or replace function fenceline.next_id() returns bigint
language sql volatile as $$
  select fenceline.id_at(clock_timestamp()) | (nextval('fenceline.job_id') & 4194303);
$$;
--- file: functions/parse_public_id.sql
-- The id behind its public form, as people type it: in any case, hyphens anywhere, I or L for 1 and O for 0.
-- p_id: the text. Returns the id; FL017 names the text and the rule it breaks. Reads no table.
-- The twin of fenceline.model.public_id.parse_id.
-- roles: producer, worker, reader
create or replace function fenceline.parse_public_id(p_id text) returns bigint
language plpgsql immutable strict parallel safe as $$
declare
  -- translate, not upper(): only ASCII letters fold, whatever the collation.
  v_symbols text := translate(p_id, 'abcdefghijklmnopqrstuvwxyzILO-', 'ABCDEFGH1JK1MN0PQRSTUVWXYZ110');
  v_symbol text;
  v_digit integer;
  v_check integer;
  v_value bigint := 0;
  v_rule text;
begin
  if length(v_symbols) <> 14 then
    v_rule := format('an id has 14 symbols without the hyphens, this has %s', length(v_symbols));
  else
    for v_place in 1 .. 13 loop
      v_symbol := substr(v_symbols, v_place, 1);
      v_digit := strpos('0123456789ABCDEFGHJKMNPQRSTVWXYZ', v_symbol) - 1;
      if v_digit < 0 then
        v_rule := format('''%s'' is not a symbol of an id', v_symbol);
        exit;
      elsif v_place = 1 and v_digit > 7 then
        v_rule := 'it is larger than any id';  -- 13 symbols hold 65 bits, an id has 63
        exit;
      end if;
      v_value := v_value << 5 | v_digit;
    end loop;
    v_check := strpos('0123456789ABCDEFGHJKMNPQRSTVWXYZ*~$=U', right(v_symbols, 1)) - 1;
    if v_rule is null and v_check <> v_value % 37 then
      v_rule := case when v_check < 0 then format('''%s'' is not a check symbol', right(v_symbols, 1))
                     else 'the check symbol does not fit; one of the symbols is mistyped' end;
    end if;
  end if;
  if v_rule is not null then
    raise exception using errcode = 'FL017', message = format('''%s'' is not a job id: %s', left(p_id, 40), v_rule);
  end if;
  return v_value;
end;
$$;
--- file: functions/pick_fair.sql
-- Like pick_ready, for a lane that shares its claims fairly between tenants: round robin over the tenants that have
-- claimable jobs, beginning behind the one that was served last; within a tenant by priority and seq.
--
-- Tenants are found by hopping from the first job of one to the first job of the next in ready_fair, so a tenant with a
-- million jobs costs as much as one with a single job; only jobs that this worker may not claim (another kind, a
-- suspect) are walked over. A claim serves at most 64 tenants, the next claim those behind them: a claim of hundreds would
-- spend most of its time on hopping. Caller holds the lane's lock; the turn is kept in lane_state.
-- roles: none
create or replace function fenceline.pick_fair(
  p_lane text,
  p_kinds text[],
  p_limit integer,
  p_alone boolean,
  out rows tid[],
  out uses integer
)
language plpgsql as $$
declare
  v_served text := coalesce((select s.served_tenant from fenceline.lane_state s where s.lane = p_lane), '');
  v_most integer := least(p_limit, 64);
  v_turn text[];
  v_each integer;
  v_exhausted boolean;
  v_last text;
begin
  with recursive behind as (  -- tenants after the one served last, then from the start
    (select r.tenant, r.ctid as first, 1 as n from fenceline.ready r
     where r.fair and r.lane = p_lane and r.tenant > v_served
       and (p_kinds is null or r.kind = any(p_kinds)) and (r.deaths is null) <> p_alone
     order by r.lane, r.tenant, r.priority desc, r.seq limit 1)
    union all
    select f.tenant, f.ctid, b.n + 1
    from behind b
    cross join lateral (
      select r.tenant, r.ctid from fenceline.ready r
      where r.fair and r.lane = p_lane and r.tenant > b.tenant
        and (p_kinds is null or r.kind = any(p_kinds)) and (r.deaths is null) <> p_alone
      order by r.lane, r.tenant, r.priority desc, r.seq limit 1) f
    where b.n < v_most
  ), before as (
    (select r.tenant, r.ctid as first, 1 as n from fenceline.ready r
     where r.fair and r.lane = p_lane and r.tenant <= v_served
       and (p_kinds is null or r.kind = any(p_kinds)) and (r.deaths is null) <> p_alone
     order by r.lane, r.tenant, r.priority desc, r.seq limit 1)
    union all
    select f.tenant, f.ctid, b.n + 1
    from before b
    cross join lateral (
      select r.tenant, r.ctid from fenceline.ready r
      where r.fair and r.lane = p_lane and r.tenant > b.tenant and r.tenant <= v_served
        and (p_kinds is null or r.kind = any(p_kinds)) and (r.deaths is null) <> p_alone
      order by r.lane, r.tenant, r.priority desc, r.seq limit 1) f
    where b.n < v_most
  )
  select array_agg(t.tenant order by t.part, t.n), array_agg(t.first order by t.part, t.n)
    into v_turn, rows
  from (select b.*, 1 as part from behind b union all select b.*, 2 from before b
        order by part, n limit v_most) t;

  -- Fewer tenants than asked for: several jobs of each, in turns. Each tenant is read as far as it would have to give if
  -- all had enough; while some have less, the others are read further.
  v_each := 1;
  v_last := v_turn[cardinality(v_turn)];
  while cardinality(rows) < p_limit and v_each < p_limit loop
    v_each := least(p_limit, case v_each when 1 then (p_limit - 1) / cardinality(v_turn) + 1 else v_each * 4 end);
    select array_agg(c.ctid), count(*) filter (where c.nth = v_each) = 0,
           (array_agg(c.tenant order by c.nth desc, c.place desc))[1]
      into rows, v_exhausted, v_last
    from (
      select q.ctid, q.nth, t.place, t.tenant
      from unnest(v_turn) with ordinality t(tenant, place)
      cross join lateral (
        select r.ctid, row_number() over () as nth
        from (select r.ctid from fenceline.ready r
              where r.fair and r.lane = p_lane and r.tenant = t.tenant
                and (p_kinds is null or r.kind = any(p_kinds)) and (r.deaths is null) <> p_alone
              order by r.priority desc, r.seq limit v_each) r) q
      order by q.nth, t.place limit p_limit) c;
    exit when v_exhausted;
  end loop;

  -- By a list of places: a join would visit them one by one, at ten times the cost.
  select coalesce(array_agg(l.ctid), '{}'), coalesce(bit_or(l.uses), 0) into rows, uses
  from (select r.ctid, r.uses from fenceline.ready r where r.ctid = any(rows) for update skip locked) l;
  if cardinality(rows) > 0 then
    insert into fenceline.lane_state (lane, served_tenant) values (p_lane, v_last)
    on conflict (lane) do update set served_tenant = excluded.served_tenant;
  end if;
end;
$$;
--- file: functions/pick_ready.sql
-- Locks up to p_limit claimable rows of a lane in order, and returns where they are and the or of their `uses`.
--
-- p_alone     false: no suspects; true: only suspects (jobs that shared a process with a crash and rerun alone)
-- p_floor_priorities, p_floor_seqs
--             per priority (highest first), the lowest seq that the worker has not seen claimed. A scan that starts
--             there does not walk over the dead index entries of claimed jobs while something pins vacuum. Between the
--             known priorities the scan is unbounded.
-- Plans: every scan is a range of ready_order; "priority = " where it can be, because a b-tree positions itself by
-- equality only.
-- roles: none
create or replace function fenceline.pick_ready(
  p_lane text,
  p_kinds text[],
  p_limit integer,
  p_alone boolean,
  p_floor_priorities smallint[],
  p_floor_seqs bigint[],
  out rows tid[],
  out uses integer
)
language plpgsql as $$
declare
  v_rows tid[];
  v_uses integer;
  v_high integer := 32767;
  v_left integer := p_limit;
begin
  rows := '{}';
  uses := 0;
  for v_i in 1 .. coalesce(cardinality(p_floor_priorities), 0) loop
    if p_floor_priorities[v_i] < v_high then
      select coalesce(array_agg(p.ctid), '{}'), coalesce(bit_or(p.uses), 0) into v_rows, v_uses
      from (select r.ctid, r.uses from fenceline.ready r
            where r.lane = p_lane and r.priority <= v_high and r.priority > p_floor_priorities[v_i]
              and (p_kinds is null or r.kind = any(p_kinds)) and (r.deaths is null) <> p_alone
            order by r.lane, r.priority desc, r.seq limit v_left for update skip locked) p;
      rows := rows || v_rows;
      uses := uses | v_uses;
      v_left := p_limit - cardinality(rows);
      exit when v_left = 0;
    end if;
    select coalesce(array_agg(p.ctid), '{}'), coalesce(bit_or(p.uses), 0) into v_rows, v_uses
    from (select r.ctid, r.uses from fenceline.ready r
          where r.lane = p_lane and r.priority = p_floor_priorities[v_i] and r.seq >= p_floor_seqs[v_i]
            and (p_kinds is null or r.kind = any(p_kinds)) and (r.deaths is null) <> p_alone
          order by r.lane, r.priority desc, r.seq limit v_left for update skip locked) p;
    rows := rows || v_rows;
    uses := uses | v_uses;
    v_left := p_limit - cardinality(rows);
    v_high := p_floor_priorities[v_i] - 1;
    exit when v_left = 0;
  end loop;
  if v_left > 0 then
    select coalesce(array_agg(p.ctid), '{}'), coalesce(bit_or(p.uses), 0) into v_rows, v_uses
    from (select r.ctid, r.uses from fenceline.ready r
          where r.lane = p_lane and r.priority <= v_high
            and (p_kinds is null or r.kind = any(p_kinds)) and (r.deaths is null) <> p_alone
          order by r.lane, r.priority desc, r.seq limit v_left for update skip locked) p;
    rows := rows || v_rows;
    uses := uses | v_uses;
  end if;
end;
$$;
--- file: functions/pick_tenant.sql
-- Like pick_ready, for a runner that is bound to a tenant: that tenant's jobs, in the lane's order.
--
-- In a fair lane they are found by ready_fair, however many jobs others have there; in any other lane the scan walks over
-- the jobs of other tenants that come first. So it does in a fair lane when nothing is found: a job whose enqueue was open
-- while the lane became fair is not marked as such. The round robin of a fair lane does not count these claims.
-- Plans: always in the order of an index. Without statistics two equalities look so selective that sorting seems cheap.
-- roles: none
create or replace function fenceline.pick_tenant(
  p_lane text,
  p_tenant text,
  p_kinds text[],
  p_limit integer,
  p_alone boolean,
  p_fair boolean,
  out rows tid[],
  out uses integer
)
language plpgsql set enable_sort = off set enable_bitmapscan = off as $$
begin
  rows := '{}';
  uses := 0;
  if p_fair then
    select coalesce(array_agg(p.ctid), '{}'), coalesce(bit_or(p.uses), 0) into rows, uses
    from (select r.ctid, r.uses from fenceline.ready r
          where r.fair and r.lane = p_lane and r.tenant = p_tenant
            and (p_kinds is null or r.kind = any(p_kinds)) and (r.deaths is null) <> p_alone
          order by r.lane, r.tenant, r.priority desc, r.seq limit p_limit for update skip locked) p;
  end if;
  if cardinality(rows) = 0 then
    select coalesce(array_agg(p.ctid), '{}'), coalesce(bit_or(p.uses), 0) into rows, uses
    from (select r.ctid, r.uses from fenceline.ready r
          where r.lane = p_lane and r.tenant = p_tenant
            and (p_kinds is null or r.kind = any(p_kinds)) and (r.deaths is null) <> p_alone
          order by r.lane, r.priority desc, r.seq limit p_limit for update skip locked) p;
  end if;
end;
$$;
--- file: functions/place_jobs.sql
-- Puts jobs where their next gate says: run_at in the future → timer, key not yet held → held, else → ready.
-- The one place that decides it. Approval and dependencies come before and are judged by their own functions.
-- Tables: timer, held, key_check, ready; reads lane. Locks nothing but the rows it inserts.
-- roles: none
create or replace function fenceline.place_jobs(p_jobs fenceline.live[]) returns void
language plpgsql as $$
declare
  v_now timestamptz := fenceline.clock();
  v_lanes text[];
begin
  insert into fenceline.timer (job_id, seq, priority, lane, kind, tenant, number, token, deaths, uses, run_at)
  select l.job_id, l.seq, l.priority, l.lane, l.kind, l.tenant, l.number, l.token, l.deaths, l.uses, l.run_at
  from unnest(p_jobs) l
  where l.run_at > v_now;

  if exists (select 1 from unnest(p_jobs) l where l.uses & 4 <> 0) then
    with parked as (
      insert into fenceline.held
        (job_id, seq, priority, lane, kind, tenant, waiting_for, number, token, deaths, uses, run_at, key)
      select l.job_id, l.seq, l.priority, l.lane, l.kind, l.tenant, 'key', l.number, l.token, l.deaths, l.uses,
             l.run_at, j.key
      from unnest(p_jobs) l join fenceline.job j on j.id = l.job_id
      where l.uses & 4 <> 0 and coalesce(l.run_at <= v_now, true)
      returning tenant, key
    )
    insert into fenceline.key_check (id, tenant, key)
    select fenceline.next_id(), d.tenant, d.key from (select distinct p.tenant, p.key from parked p) d;
  end if;

  -- In a lane with ageing, "priority grows by one every ageing_seconds" is a fixed order: time of becoming claimable
  -- less priority × ageing. So the rank is a seq, and claims need not know about ageing.
  insert into fenceline.ready
    (job_id, seq, priority, lane, kind, tenant, own_priority, number, token, deaths, uses, fair)
  select l.job_id, fenceline.aged_seq(l.seq, l.priority, n.ageing_seconds),
         case when n.ageing_seconds is null then l.priority else 0 end,
         l.lane, l.kind, l.tenant,
         case when n.ageing_seconds is not null then l.priority end,
         nullif(l.number, 0), l.token, l.deaths, nullif(l.uses, 0), nullif(n.fair, false)
  from unnest(p_jobs) l left join fenceline.lane n on n.name = l.lane
  where coalesce(l.run_at <= v_now, true) and coalesce(l.uses & 4, 0) = 0;

  select array_agg(distinct l.lane) into v_lanes from unnest(p_jobs) l where coalesce(l.run_at <= v_now, true);
  if v_lanes is not null then
    perform fenceline.wake(v_lanes);
  end if;
  if exists (select 1 from fenceline.follow) then
    perform fenceline.tell_followers(array(select l.job_id from unnest(p_jobs) l));
  end if;
end;
$$;
--- file: functions/promote_timers.sql
-- Moves due timers on to their next gate. They become claimable now, so they get a seq of now. Returns how many.
-- roles: worker
create or replace function fenceline.promote_timers(p_limit integer default 1000) returns integer
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_now timestamptz := fenceline.clock();
  v_due fenceline.live[];
begin
  with due as (
    delete from fenceline.timer t where t.job_id = any(array(
      select d.job_id from fenceline.timer d where d.run_at <= v_now
      order by d.run_at, d.job_id limit p_limit for update skip locked))
    returning t.*
  )
  select array_agg(row(d.job_id, fenceline.next_id(), d.priority, d.lane, d.kind, d.tenant, d.number, d.token, d.deaths,
                       d.uses, d.run_at)::fenceline.live order by d.run_at, d.job_id)
    into v_due
  from (select * from due order by run_at, job_id) d;
  if v_due is not null then
    perform fenceline.place_jobs(v_due);
  end if;
  return coalesce(cardinality(v_due), 0);
end;
$$;
--- file: functions/prune.sql
-- Forgets finished jobs whose retention (per kind and status) is over. Returns how many; call it again until it is 0.
--
-- A partition in which everything is past the longest retention is dropped whole, one with jobs per call; a live
-- straggler in it (a job scheduled far ahead) moves to the default partition first. Elsewhere rows are deleted, p_limit
-- at a time; but what will be dropped with its day within two days, and has the longest retention anyway, waits for that.
-- Waits for no lock longer than lock_timeout; what was not possible now is done next time. A transaction of its own,
-- please: a dropped partition's parents are locked until its end.
-- roles: worker
create or replace function fenceline.prune(p_limit integer default 10000) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp set lock_timeout = '100ms' as $$
declare
  v_now timestamptz := fenceline.clock();
  v_shortest interval;
  v_longest interval;
  v_day date;          -- of the jobs whose longest retention ends now
  v_from bigint;
  v_to bigint;
  v_ids bigint[];
  v_part record;
  v_some boolean;
  v_name text;
  v_empty text[] := '{}';
  v_dropped bigint;
begin
  if not pg_try_advisory_xact_lock(1179926087, 2) then
    return 0;
  end if;
  select make_interval(secs => least(min(s.retention_seconds), min(r.seconds))),
         make_interval(secs => greatest(max(s.retention_seconds), max(r.seconds)))
    into v_shortest, v_longest
  from fenceline.setting s
  left join (select v.value::double precision as seconds
             from fenceline.kind k
             cross join lateral jsonb_each_text(coalesce(k.retention, '{}') || coalesce(k.operator_retention, '{}')) v) r
    on true;
  v_day := ((v_now - v_longest) at time zone 'UTC')::date;

  for v_part in
    select substr(c.relname, 5) as day
    from pg_inherits i join pg_class c on c.oid = i.inhrelid
    where i.inhparent = 'fenceline.job'::regclass and c.relname ~ '^job_\d{8}$'
      and to_date(substr(c.relname, 5), 'YYYYMMDD') < v_day
    order by c.relname
  loop
    execute format('select exists (select 1 from fenceline.%I)', 'job_' || v_part.day) into v_some;
    if not v_some then
      v_empty := v_empty || v_part.day;
      continue;
    end if;
    begin
      v_dropped := fenceline.drop_day(v_part.day, v_now - v_longest, p_limit);
    exception when lock_not_available then null;  -- next time
    end;
    -- Nothing more under its locks.
    if v_dropped is not null then
      return v_dropped;
    end if;
  end loop;

  -- A short retention is meant to the minute; a long one may wait for its partition, which costs next to nothing.
  if v_longest >= interval '3 days' then
    v_from := fenceline.id_at((v_day - 1)::timestamp at time zone 'UTC');
    v_to := fenceline.id_at((v_day + 1)::timestamp at time zone 'UTC');
  end if;
  -- The index on ended_at finds the candidates; the predicate per kind and status decides.
  v_ids := array(
    select h.job_id
    from fenceline.history h
    join fenceline.job j on j.id = h.job_id
    cross join lateral fenceline.retention_of(j.kind, h.outcome) r (retention)
    where h.final and h.ended_at < v_now - v_shortest and h.ended_at < v_now - r.retention
      and (v_from is null or h.job_id < v_from or h.job_id >= v_to or r.retention < v_longest
           or h.tableoid = 'fenceline.history_default'::regclass)
    limit p_limit);
  if cardinality(v_ids) > 0 then
    perform fenceline.forget_jobs(v_ids);
  end if;

  foreach v_name in array v_empty[1:10] loop
    begin
      perform fenceline.drop_day(v_name, v_now - v_longest, p_limit);
    exception when lock_not_available then exit;
    end;
  end loop;
  return cardinality(v_ids);
end;
$$;
--- file: functions/prune_requests.sql
-- Forgets what only had to be remembered for a while: answered claims, idempotency keys, waiters, workers long gone.
-- roles: none
create or replace function fenceline.prune_requests() returns void
language plpgsql as $$
declare
  v_now timestamptz := fenceline.clock();
begin
  delete from fenceline.claim_request where at < v_now - interval '1 hour';
  delete from fenceline.idempotency where expires_at < v_now;
  delete from fenceline.waiter where until < v_now;
  delete from fenceline.watch where until < v_now;
  delete from fenceline.follow where until < v_now;
  delete from fenceline.trigger_seen where until < v_now;
  -- Rows of attempts that are gone: they hold nothing, and are only in the way of who looks.
  delete from fenceline.attempt_lock l where l.since < v_now - interval '1 minute' and not exists (
    select 1 from fenceline.running r where r.job_id = l.job_id and r.attempt_id = l.attempt_id);
  delete from fenceline.lock_wait l where l.since < v_now - interval '1 minute' and not exists (
    select 1 from fenceline.running r where r.job_id = l.job_id and r.attempt_id = l.attempt_id);
  -- History names workers by id, so they stay as long as history does.
  delete from fenceline.worker w
  where w.stopped_at < v_now - make_interval(secs => (select s.retention_seconds from fenceline.setting s) + 86400);
end;
$$;
--- file: functions/prune_ticks.sql
-- Forgets ticks that are older than the general retention, some at a time.
-- roles: none
create or replace function fenceline.prune_ticks() returns void
language sql as $$
  delete from fenceline.schedule_tick t
  where t.ctid = any (array(
    select o.ctid from fenceline.schedule_tick o
    where o.decided_at < fenceline.clock() - make_interval(secs => (select s.retention_seconds from fenceline.setting s))
    limit 10000));
$$;
--- file: functions/public_id.sql
-- The form in which people see an id: 13 symbols of Crockford's Base32 and a check symbol (id modulo 37), in groups.
-- p_id: 0 or more; a negative id is FL017. Returns text like 01HQ-3KBR-T5GN-8W. Reads no table.
-- The twin of fenceline.model.public_id.format_id.
-- roles: producer, worker, reader
create or replace function fenceline.public_id(p_id bigint) returns text
language plpgsql immutable strict parallel safe as $$
begin
  if p_id < 0 then
    raise exception using errcode = 'FL017', message = format('%s is not an id: ids are 0 or more', p_id);
  end if;
  -- One expression, no loop: called for every row of a list. Measured 2 µs, a loop 4 µs. A plain SQL function is as
  -- fast only where the planner can inline it, and then the plan repeats this text.
  return substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', (p_id >> 60)::integer + 1, 1)
    || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', (p_id >> 55 & 31)::integer + 1, 1)
    || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', (p_id >> 50 & 31)::integer + 1, 1)
    || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', (p_id >> 45 & 31)::integer + 1, 1)
    || '-'
    || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', (p_id >> 40 & 31)::integer + 1, 1)
    || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', (p_id >> 35 & 31)::integer + 1, 1)
    || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', (p_id >> 30 & 31)::integer + 1, 1)
    || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', (p_id >> 25 & 31)::integer + 1, 1)
    || '-'
    || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', (p_id >> 20 & 31)::integer + 1, 1)
    || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', (p_id >> 15 & 31)::integer + 1, 1)
    || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', (p_id >> 10 & 31)::integer + 1, 1)
    || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', (p_id >> 5 & 31)::integer + 1, 1)
    || '-'
    || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', (p_id & 31)::integer + 1, 1)
    || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ*~$=U', (p_id % 37)::integer + 1, 1);
end;
$$;
--- file: functions/rate_tokens.sql
-- How many claims a lane's rate limit allows right now. Caller holds the lane's lock.
-- roles: none
create or replace function fenceline.rate_tokens(p_lane fenceline.lane, p_now timestamptz) returns double precision
language plpgsql stable as $$
declare
  v_most double precision := coalesce(p_lane.burst, greatest(1, p_lane.rate_per_second));
  v_state record;
begin
  select s.tokens, s.refilled_at into v_state from fenceline.lane_state s
  where s.lane = p_lane.name and s.refilled_at is not null;
  if not found then
    return v_most;
  end if;
  return least(v_most, v_state.tokens
    + p_lane.rate_per_second * greatest(0, extract(epoch from p_now - v_state.refilled_at)::double precision));
end;
$$;
--- file: functions/read_after.sql
-- The ids in an "after" option, sorted and distinct; a group stands for the jobs that are in it now.
-- Raises FL008 for a job that is not there (or another tenant's), FL020 for a group without jobs.
-- roles: none
create or replace function fenceline.read_after(p_tenant text, p_after jsonb) returns bigint[]
language plpgsql stable as $$
declare
  v_ids bigint[];
  v_members bigint[];
  v_group text;
  v_missing bigint;
begin
  v_ids := array(select fenceline.read_job_id(a) from jsonb_array_elements(fenceline.after_list(p_after)) a);
  if array_position(v_ids, null) is not null then
    raise exception using errcode = 'FL017', message = 'null is not a job id: "after" needs the ids of jobs';
  end if;
  select a.id into v_missing
  from unnest(v_ids) a(id)
  where not exists (select 1 from fenceline.job j where j.id = a.id and j.tenant = p_tenant)
  limit 1;
  if v_missing is not null then
    raise exception using errcode = 'FL008',
      message = format('job %s, which this one should wait for, does not exist', fenceline.public_id(v_missing));
  end if;
  if jsonb_typeof(p_after) = 'object' and p_after ->> 'group' is not null then
    v_group := p_after ->> 'group';
    v_members := array(select j.id from fenceline.job j where j.tenant = p_tenant and j.group_name = v_group);
    v_ids := v_ids || v_members;
    if cardinality(v_members) = 0 then
      raise exception using errcode = 'FL020',
        message = format('group %L has no jobs: enqueue its jobs before the one that waits for them', v_group);
    end if;
  end if;
  return array(select distinct i from unnest(v_ids) i order by i);
end;
$$;
--- file: functions/read_hash.sql
-- The option requires_hash: a snapshot's hash, or {"job": id} for the hash of an earlier job's snapshot.
-- Raises FL007 (not a hash, a job without snapshot), FL008 (the job does not exist), FL017 (not an id).
-- roles: none
create or replace function fenceline.read_hash(p_tenant text, p_options jsonb) returns text
language plpgsql stable as $$
declare
  v_given jsonb := p_options -> 'requires_hash';
  v_job record;
  v_id bigint;
begin
  if jsonb_typeof(v_given) is distinct from 'object' then
    return fenceline.read_text(p_options, 'requires_hash');
  end if;
  if v_given - 'job' <> '{}' or v_given -> 'job' is null then
    raise exception using errcode = 'FL007',
      message = format('requires_hash %s is not valid: use the hash of a snapshot, or {"job": id}', left(v_given::text, 80));
  end if;
  v_id := fenceline.read_job_id(v_given -> 'job');
  select j.snapshot_hash into v_job from fenceline.job j where j.id = v_id and j.tenant = p_tenant;
  if not found then
    raise exception using errcode = 'FL008',
      message = format('job %s, whose hash is required, does not exist', fenceline.public_id(v_id));
  end if;
  if v_job.snapshot_hash is null then
    raise exception using errcode = 'FL007',
      message = format('job %s, whose hash is required, has no snapshot', fenceline.public_id(v_id));
  end if;
  return v_job.snapshot_hash;
end;
$$;
--- file: functions/read_integer.sql
-- An option that must be a whole number between two bounds; raises p_errcode with value and rule.
-- roles: none
create or replace function fenceline.read_integer(p_options jsonb, p_name text, p_least integer, p_most integer,
                                                  p_errcode text)
returns integer
language plpgsql immutable as $$
begin
  if jsonb_typeof(p_options -> p_name) <> 'number'
     or (p_options ->> p_name)::numeric <> trunc((p_options ->> p_name)::numeric)
     or (p_options ->> p_name)::numeric not between p_least and p_most then
    raise exception using errcode = p_errcode,
      message = format('%s %s is out of range: use a whole number from %s to %s', p_name,
                       left((p_options -> p_name)::text, 80), p_least, p_most);
  end if;
  return (p_options ->> p_name)::numeric::integer;
end;
$$;
--- file: functions/read_job_id.sql
-- A job id in JSON: a public id (string) or an internal one (whole number); null when there is none. Raises FL017.
-- roles: none
create or replace function fenceline.read_job_id(p_id jsonb) returns bigint
language plpgsql immutable parallel safe as $$
begin
  case jsonb_typeof(p_id)
    when 'string' then
      return fenceline.parse_public_id(p_id #>> '{}');
    when 'number' then
      if p_id::numeric = trunc(p_id::numeric) and p_id::numeric between 0 and 9223372036854775807 then
        return p_id::numeric::bigint;
      end if;
    else
      if p_id is null then
        return null;
      end if;
  end case;
  raise exception using errcode = 'FL017',
    message = format('%s is not a job id: use a public id, or an internal one as a whole number', left(p_id::text, 80));
end;
$$;
--- file: functions/read_journal.sql
-- What happened, in order, after a place in the journal. First gives the new rows their places: one reader at a time, under
-- a lock that it keeps until its commit, so that nobody ever sees a place before a lower one.
-- What is older than two minutes, or more than a million places back, is forgotten: a reader that finds a place left out
-- has missed something.
-- roles: admin
create or replace function fenceline.read_journal(
  p_after bigint,
  p_limit integer default 1000,
  out place bigint,
  out job_id bigint,
  out at timestamptz,
  out token bigint,
  out first_line integer,
  out last_line integer
) returns setof record
language plpgsql security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off as $$
declare
  v_oldest record;
begin
  if exists (select 1 from fenceline.journal j where j.position is null)
     and pg_try_advisory_xact_lock(1179926090, 1) then
    -- By time: of one job's changes the earlier was committed before the later was made, by the lock on its row.
    update fenceline.journal j set position = f.place
    from (select n.ctid as row, nextval('fenceline.journal_position') as place
          from (select u.ctid from fenceline.journal u where u.position is null order by u.at limit 10000) n) f
    where j.ctid = f.row;
    select o.position, o.at into v_oldest from fenceline.journal o
    where o.position is not null order by o.position limit 1;
    if v_oldest.at < fenceline.clock() - interval '2 minutes'
       or v_oldest.position < (select s.last_value from fenceline.journal_position s) - 1000000 then
      delete from fenceline.journal j where j.position < v_oldest.position + 10000
        and (j.at < fenceline.clock() - interval '2 minutes'
             or j.position < (select s.last_value from fenceline.journal_position s) - 1000000);
    end if;
  end if;
  return query
  select j.position, j.job_id, j.at, j.token, j.first_line, j.last_line from fenceline.journal j
  where j.position > p_after order by j.position limit p_limit;
end;
$$;
--- file: functions/read_labels.sql
-- Labels: a JSON object of at most 32 strings, names and values up to 256 characters; null when empty.
-- roles: none
create or replace function fenceline.read_labels(p_labels jsonb) returns jsonb
language plpgsql immutable as $$
declare
  v_bad text;
begin
  if jsonb_typeof(p_labels) <> 'object' then
    raise exception using errcode = 'FL007', message = 'labels must be a JSON object of strings';
  end if;
  select format('label %L is not valid: use at most 32 labels, names and string values of 1 to 256 characters', l.key)
    into v_bad
  from jsonb_each(p_labels) with ordinality l(key, value, n)
  where jsonb_typeof(l.value) <> 'string' or length(l.key) not between 1 and 256
     or length(l.value #>> '{}') not between 1 and 256 or l.n > 32
  limit 1;
  if v_bad is not null then
    raise exception using errcode = 'FL007', message = v_bad;
  end if;
  return nullif(p_labels, '{}');
end;
$$;
--- file: functions/read_options.sql
-- The options of an enqueue as a job row, every value checked. What is left out stays null.
-- `after` is only marked here (after_policy); insert_gated_job reads it, because it needs the other jobs.
-- Raises FL002, FL003, FL004, FL006 (snapshot), FL007, FL008 (requires_hash), FL017 (parent).
-- roles: none
create or replace function fenceline.read_options(p_kind text, p_options jsonb) returns fenceline.job
language plpgsql stable as $$
declare
  v_job fenceline.job;
  v_bad text;
begin
  v_job.kind := p_kind;
  v_job.tenant := 'default';
  if p_options = '{}' then
    return v_job;
  end if;
  if jsonb_typeof(p_options) <> 'object' then
    raise exception using errcode = 'FL007', message = 'options must be a JSON object';
  end if;
  -- Null is "left out"; what is inside a value is not ours to drop.
  p_options := coalesce(
    (select jsonb_object_agg(e.key, e.value) from jsonb_each(p_options) e where e.value <> 'null'), '{}');
  select string_agg(k, ', ') into v_bad
  from jsonb_object_keys(p_options) k
  where k <> all (array['lane', 'priority', 'run_at', 'expires_at', 'dedupe_key', 'idempotency_key', 'max_attempts',
                        'labels', 'resource_lock', 'key', 'key_limit', 'needs_approval', 'snapshot', 'requires_hash',
                        'after', 'identity', 'tenant', 'timeout', 'retry', 'group', 'parent', 'retry_of', 'delivery',
                        'traceparent']);
  if v_bad is not null then
    raise exception using errcode = 'FL007', message = format('unknown option %s for kind %L', v_bad, p_kind);
  end if;

  if p_options ? 'lane' then
    perform fenceline.check_name('lane', p_options ->> 'lane');
    v_job.lane := p_options ->> 'lane';
  end if;
  if p_options ? 'tenant' then
    perform fenceline.check_name('tenant', p_options ->> 'tenant');
    v_job.tenant := p_options ->> 'tenant';
  end if;
  if p_options ? 'priority' then
    v_job.priority := fenceline.read_integer(p_options, 'priority', -32768, 32767, 'FL003');
  end if;
  if p_options ? 'max_attempts' then
    v_job.max_attempts := fenceline.read_integer(p_options, 'max_attempts', 1, 1000, 'FL004');
  end if;
  if p_options ? 'key' then
    v_job.key := fenceline.read_text(p_options, 'key');
    v_job.key_limit := 1;
  end if;
  if p_options ? 'key_limit' then
    if v_job.key is null then
      raise exception using errcode = 'FL007', message = 'key_limit is given without a key: give both, or neither';
    end if;
    v_job.key_limit := fenceline.read_integer(p_options, 'key_limit', 1, 10000, 'FL007');
  end if;
  v_job.dedupe_key := fenceline.read_text(p_options, 'dedupe_key');
  v_job.idempotency_key := fenceline.read_text(p_options, 'idempotency_key');
  v_job.resource_lock := fenceline.read_text(p_options, 'resource_lock');
  v_job.identity := fenceline.read_text(p_options, 'identity');
  v_job.group_name := fenceline.read_text(p_options, 'group');
  v_job.delivery := fenceline.read_text(p_options, 'delivery');
  v_job.traceparent := fenceline.read_text(p_options, 'traceparent');
  v_job.requires_hash := fenceline.read_hash(v_job.tenant, p_options);
  v_job.run_at := fenceline.read_time(p_options, 'run_at');
  v_job.expires_at := fenceline.read_time(p_options, 'expires_at');
  v_job.timeout_seconds := fenceline.read_seconds(p_options, 'timeout');
  if p_options ? 'needs_approval' then
    if jsonb_typeof(p_options -> 'needs_approval') <> 'boolean' then
      raise exception using errcode = 'FL007',
        message = format('needs_approval %s is not a boolean', p_options -> 'needs_approval');
    end if;
    v_job.needs_approval := nullif((p_options ->> 'needs_approval')::boolean, false);
  end if;
  if p_options ? 'labels' then
    v_job.labels := fenceline.read_labels(p_options -> 'labels');
  end if;
  if p_options ? 'snapshot' then
    v_job.snapshot := p_options -> 'snapshot';
    begin
      v_job.snapshot_hash := fenceline.snapshot_hash(v_job.snapshot);
    exception when statement_too_complex then
      raise exception using errcode = 'FL006',
        message = format('snapshot of kind %L cannot be hashed: it is nested too deeply', p_kind);
    end;
  end if;
  if p_options ? 'retry' then
    v_job.retry := p_options -> 'retry';
  end if;
  if p_options ? 'after' then
    perform fenceline.check_after(p_options -> 'after');
    v_job.after_policy := coalesce(p_options -> 'after' ->> 'policy', 'success');
    if v_job.after_policy not in ('success', 'always') then
      raise exception using errcode = 'FL007',
        message = format('policy %L of after is unknown: use "success" or "always"', v_job.after_policy);
    end if;
    if p_options -> 'after' = '[]' then
      v_job.after_policy := null;
    end if;
  end if;
  v_job.parent := fenceline.read_job_id(p_options -> 'parent');
  v_job.retry_of := fenceline.read_job_id(p_options -> 'retry_of');
  return v_job;
end;
$$;
--- file: functions/read_schedule.sql
-- Settings as a schedule's row, every value checked and defaults filled in; what is not a setting stays null.
-- Whether a cron expression makes sense is for the program that computes its ticks: only its form is checked here.
-- Raises FL002, FL031, and what an enqueue with such options raises.
-- roles: none
create or replace function fenceline.read_schedule(p_name text, p_settings jsonb) returns fenceline.schedule
language plpgsql stable as $$
declare
  v_schedule fenceline.schedule;
  v_bad text;
begin
  perform fenceline.check_name('schedule', p_name);
  v_schedule.name := p_name;
  select string_agg(k, ', ') into v_bad from jsonb_object_keys(p_settings) k
  where k <> all (array['kind', 'args', 'options', 'cron', 'every', 'timezone', 'misfire', 'misfire_limit', 'windows',
                        'paused']);
  if v_bad is not null then
    raise exception using errcode = 'FL031', message = format('schedule %L has no setting %s', p_name, v_bad);
  end if;
  if p_settings ->> 'kind' is null then
    raise exception using errcode = 'FL031', message = format('schedule %L is new and needs a kind', p_name);
  end if;
  perform fenceline.check_name('kind', p_settings ->> 'kind');
  v_schedule.kind := p_settings ->> 'kind';

  v_schedule.cron := p_settings ->> 'cron';
  if (v_schedule.cron is null) = (p_settings ->> 'every' is null) then
    raise exception using errcode = 'FL031',
      message = format('schedule %L needs either cron or every, and has %s', p_name,
                       case when v_schedule.cron is null then 'neither'
                            else format('both, cron %L and every %s', v_schedule.cron, p_settings -> 'every') end);
  end if;
  if v_schedule.cron !~ '^\s*[0-9a-zA-Z*,/#-]+(\s+[0-9a-zA-Z*,/#-]+){4}\s*$' then
    raise exception using errcode = 'FL031',
      message = format('cron %L of schedule %L is not valid', left(v_schedule.cron, 200), p_name),
      hint = 'Use five fields: minute, hour, day of the month, month, day of the week.';
  end if;
  if v_schedule.cron is null then
    v_schedule.every := fenceline.read_integer(p_settings, 'every', 1, 31622400, 'FL031');
  end if;

  v_schedule.timezone := coalesce(p_settings ->> 'timezone', 'UTC');
  if v_schedule.timezone <> 'UTC'
     and not exists (select 1 from fenceline.schedule s where s.timezone = v_schedule.timezone)  -- the next is slow
     and not exists (select 1 from pg_catalog.pg_timezone_names z where z.name = v_schedule.timezone) then
    raise exception using errcode = 'FL031',
      message = format('timezone %L of schedule %L is unknown', left(v_schedule.timezone, 200), p_name),
      hint = 'Use a name such as "Europe/Berlin".';
  end if;
  v_schedule.misfire := coalesce(p_settings ->> 'misfire', 'once');
  if v_schedule.misfire not in ('skip', 'once', 'all') then
    raise exception using errcode = 'FL031',
      message = format('misfire %L of schedule %L is unknown: use skip, once or all', left(v_schedule.misfire, 200),
                       p_name);
  end if;
  v_schedule.misfire_limit := 10;
  if p_settings ->> 'misfire_limit' is not null then
    v_schedule.misfire_limit := fenceline.read_integer(p_settings, 'misfire_limit', 1, 1000, 'FL031');
  end if;
  v_schedule.windows := coalesce(nullif(p_settings -> 'windows', 'null'), '[]');
  perform fenceline.check_windows(p_name, v_schedule.windows);
  if jsonb_typeof(coalesce(nullif(p_settings -> 'paused', 'null'), 'false')) <> 'boolean' then
    raise exception using errcode = 'FL031',
      message = format('paused %s of schedule %L is not a boolean', p_settings -> 'paused', p_name);
  end if;
  v_schedule.paused := coalesce((p_settings ->> 'paused')::boolean, false);

  v_schedule.args := coalesce(nullif(p_settings -> 'args', 'null'), '{}');
  v_schedule.options := coalesce(nullif(p_settings -> 'options', 'null'), '{}');
  if jsonb_typeof(v_schedule.args) <> 'object' or jsonb_typeof(v_schedule.options) <> 'object' then
    raise exception using errcode = 'FL031',
      message = format('args and options of schedule %L must be JSON objects', p_name);
  end if;
  select string_agg(k, ', ') into v_bad from jsonb_object_keys(v_schedule.options) k
  where k = any (array['run_at', 'expires_at', 'idempotency_key', 'after', 'parent', 'retry_of', 'traceparent']);
  if v_bad is not null then
    raise exception using errcode = 'FL031',
      message = format('option %s of schedule %L is about one job, not about all that a schedule makes', v_bad, p_name);
  end if;
  perform fenceline.read_options(v_schedule.kind, v_schedule.options);
  return v_schedule;
end;
$$;
--- file: functions/read_seconds.sql
-- An option that must be a duration: a number of seconds above 0, or null when it is not there. Raises FL007.
-- roles: none
create or replace function fenceline.read_seconds(p_options jsonb, p_name text) returns double precision
language plpgsql immutable as $$
begin
  if p_options ->> p_name is null then
    return null;
  end if;
  if jsonb_typeof(p_options -> p_name) <> 'number' or (p_options ->> p_name)::numeric <= 0
     or (p_options ->> p_name)::numeric > 1000000000 then
    raise exception using errcode = 'FL007',
      message = format('%s %s is out of range: use a number of seconds above 0, at most 1000000000', p_name,
                       left((p_options -> p_name)::text, 80));
  end if;
  return (p_options ->> p_name)::double precision;
end;
$$;
--- file: functions/read_text.sql
-- An option that must be a string of 1 to 512 characters, or null when it is not there.
-- roles: none
create or replace function fenceline.read_text(p_options jsonb, p_name text) returns text
language plpgsql immutable as $$
begin
  if not p_options ? p_name then
    return null;
  end if;
  if jsonb_typeof(p_options -> p_name) <> 'string' or length(p_options ->> p_name) not between 1 and 512 then
    raise exception using errcode = 'FL007',
      message = format('%s %s is not valid: use a string of 1 to 512 characters', p_name,
                       left((p_options -> p_name)::text, 80));
  end if;
  return p_options ->> p_name;
end;
$$;
--- file: functions/read_time.sql
-- An option that must be a moment: an ISO 8601 string with a zone, or null when it is not there.
-- roles: none
create or replace function fenceline.read_time(p_options jsonb, p_name text) returns timestamptz
language plpgsql stable as $$
declare
  v_value text := p_options ->> p_name;
begin
  if v_value is null then
    return null;
  end if;
  -- The zone must be said: without it the moment would depend on the session's TimeZone.
  if v_value !~ '^\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?\s*(Z|[+-]\d\d(:?\d\d)?)$' then
    raise exception using errcode = 'FL007',
      message = format('%s %L is not a moment: use ISO 8601 with a zone, like 2026-01-31T12:00:00Z', p_name,
                       left(v_value, 80));
  end if;
  return v_value::timestamptz;
exception when datetime_field_overflow or invalid_datetime_format or invalid_time_zone_displacement_value then
  raise exception using errcode = 'FL007',
    message = format('%s %L is not a moment: %s', p_name, left(v_value, 80), sqlerrm);
end;
$$;
--- file: functions/record_event.sql
-- Appends a row to the audit of operator actions.
-- roles: none
create or replace function fenceline.record_event(p_actor text, p_action text, p_subject text, p_tenant text,
                                                  p_reason text, p_before jsonb, p_after jsonb) returns void
language sql as $$
  insert into fenceline.event (id, at, actor, action, subject, tenant, reason, before, after)
  values (fenceline.next_id(), fenceline.clock(), p_actor, p_action, p_subject, p_tenant, p_reason, p_before, p_after);
$$;
--- file: functions/record_step.sql
-- Records how a step of a live attempt ended. A step that is done stays as it is: the same again (a reply was lost) is
-- answered like the first, another args hash is refused.
--
-- p_args_hash   of the step's arguments, so that a name used for something else is noticed; null: not compared
-- p_error       given: the step failed, and is run again by the next attempt
-- Returns the step's result. Raises FL012 (stale), FL021 (the name belongs to other arguments), FL005, FL007.
-- roles: worker
create or replace function fenceline.record_step(
  p_job_id bigint,
  p_attempt_id uuid,
  p_name text,
  p_args_hash text default null,
  p_result jsonb default null,
  p_error jsonb default null,
  p_ran_seconds double precision default null
) returns jsonb
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_run fenceline.running;
  v_step fenceline.step;
begin
  perform fenceline.check_step_name(p_name);
  perform fenceline.check_size(format('the result of step %L', p_name), p_result);
  v_run := fenceline.live_attempt(p_job_id, p_attempt_id);
  select * into v_step from fenceline.step s where s.job_id = p_job_id and s.name = p_name;
  if v_step.status = 'done' then
    if v_step.args_hash <> p_args_hash then  -- null, on either side, is not compared
      raise exception using errcode = 'FL021',
        message = format('step %L of job %s was done with other arguments', p_name, fenceline.public_id(p_job_id)),
        hint = 'Give each use of a step a name of its own.';
    end if;
    return v_step.result;
  end if;
  insert into fenceline.step as s (job_id, name, position, status, args_hash, result, error, token, ran_seconds, ended_at)
  select p_job_id, p_name, coalesce(max(o.position), 0) + 1, case when p_error is null then 'done' else 'failed' end,
         p_args_hash, p_result, p_error, v_run.token, p_ran_seconds, fenceline.clock()
  from fenceline.step o where o.job_id = p_job_id
  on conflict (job_id, name) do update set
    status = excluded.status, args_hash = excluded.args_hash, result = excluded.result, error = excluded.error,
    token = excluded.token, ran_seconds = excluded.ran_seconds, ended_at = excluded.ended_at;
  return p_result;
end;
$$;
--- file: functions/refuse_claims.sql
-- Ends picked jobs that must not start any more: past expires_at, or their snapshot is not the one that was planned.
-- They are gone from `ready` afterwards, so the claim passes over them.
-- roles: none
create or replace function fenceline.refuse_claims(p_rows tid[], p_now timestamptz) returns void
language plpgsql as $$
declare
  v_job record;
begin
  for v_job in
    select j.id, j.expires_at <= p_now as expired, j.expires_at, j.snapshot_hash, j.requires_hash
    from fenceline.ready r join fenceline.job j on j.id = r.job_id
    where r.ctid = any(p_rows) and r.uses & 48 <> 0
      and (j.expires_at <= p_now
           or (j.requires_hash is not null and j.snapshot_hash is distinct from j.requires_hash))
  loop
    if v_job.expired then
      perform fenceline.end_waiting(array[v_job.id], 'cancelled', fenceline.expired_error(v_job.expires_at), null);
    else
      perform fenceline.end_waiting(array[v_job.id], 'failed', jsonb_build_object(
        'code', 'plan_hash_mismatch',
        'message', format('the configuration has changed since it was planned: hash %s was required, this job has %s',
                          v_job.requires_hash, coalesce(v_job.snapshot_hash, 'none'))), null);
    end if;
  end loop;
end;
$$;
--- file: functions/register_worker.sql
-- Registers a process that claims jobs, and returns its id. Its attempts stand and fall with its lease, which heartbeat
-- renews.
--
-- p_kinds     the kinds it has handlers for; null: all
-- p_tenant, p_owner   of a runner: whose jobs it may claim (null: everybody's), and who may write for it
-- Raises FL007 for a lease outside 0.1 to 86400 seconds.
-- roles: worker
create or replace function fenceline.register_worker(
  p_name text,
  p_lease_seconds double precision default 30,
  p_kinds text[] default null,
  p_lanes text[] default null,
  p_host text default null,
  p_pid integer default null,
  p_version text default null,
  p_supervisor_id integer default null,
  p_runner boolean default false,
  p_labels jsonb default null,
  p_tenant text default null,
  p_owner text default null
) returns integer
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_id integer;
  v_now timestamptz := fenceline.clock();
begin
  if p_lease_seconds is null or not p_lease_seconds between 0.1 and 86400 then
    raise exception using errcode = 'FL007',
      message = format('lease of %s seconds is out of range: use 0.1 to 86400', p_lease_seconds);
  end if;
  insert into fenceline.worker (name, host, pid, version, supervisor_id, runner, lanes, kinds, labels, lease_seconds,
                                lease_until, heartbeat_at, started_at, tenant, owner)
  values (left(coalesce(p_name, 'worker'), 200), p_host, p_pid, p_version, p_supervisor_id, p_runner, p_lanes,
          p_kinds, p_labels, p_lease_seconds, v_now + make_interval(secs => p_lease_seconds), v_now, v_now,
          p_tenant, p_owner)
  returning id into v_id;
  return v_id;
end;
$$;
--- file: functions/reject_job.sql
-- Rejects a job that awaits approval: it ends as cancelled, code `rejected`, with the reason. Raises FL010, FL011.
-- roles: admin
create or replace function fenceline.reject_job(
  p_job_id bigint,
  p_actor text default null,
  p_reason text default null,
  p_tenant text default null
) returns text
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_job fenceline.job := fenceline.find_job(p_job_id, p_tenant);
begin
  perform 1 from fenceline.held h where h.job_id = p_job_id and h.waiting_for = 'approval' for update;
  if not found then
    perform fenceline.wrong_status(p_job_id, 'rejected', 'awaiting_approval');
  end if;
  perform fenceline.end_waiting(array[p_job_id], 'cancelled',
    jsonb_build_object('code', 'rejected', 'message', coalesce(p_reason, 'rejected')), p_actor);
  perform fenceline.record_event(p_actor, 'job.reject', fenceline.public_id(p_job_id), v_job.tenant, p_reason,
    '{"status": "awaiting_approval"}', '{"status": "cancelled"}');
  return 'cancelled';
end;
$$;
--- file: functions/release_held.sql
-- Takes jobs out of `held` whose gates of approval and dependencies are met, and places them by the rest.
-- They become claimable now, so they get a seq of now.
-- roles: none
create or replace function fenceline.release_held(p_jobs fenceline.live[]) returns void
language plpgsql as $$
begin
  delete from fenceline.held where job_id = any(array(select l.job_id from unnest(p_jobs) l));
  perform fenceline.place_jobs(array(
    select row(l.job_id, fenceline.next_id(), l.priority, l.lane, l.kind, l.tenant, l.number, l.token, l.deaths, l.uses,
               l.run_at)::fenceline.live
    from unnest(p_jobs) l));
end;
$$;
--- file: functions/release_lock.sql
-- Ends a block's lock, or its wait for one, and tells the next in line (channel fenceline_lock). Harmless to repeat, and
-- after the attempt is gone: the owner is a name that nobody else has.
-- Returns the block that is next, or null. A wait that begins meanwhile may go unseen here; it is asked for again soon.
-- roles: worker
create or replace function fenceline.release_lock(p_job_id bigint, p_owner uuid) returns uuid
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_lock record;
  v_next uuid;
begin
  delete from fenceline.lock_wait w where w.owner = p_owner and w.job_id = p_job_id
  returning w.tenant, w.namespace, w.name into v_lock;
  if not found then
    delete from fenceline.attempt_lock l where l.owner = p_owner and l.job_id = p_job_id
    returning l.tenant, l.namespace, l.name into v_lock;
  end if;
  if not found then
    return null;
  end if;
  select w.owner into v_next
  from fenceline.lock_wait w join fenceline.running r on r.job_id = w.job_id and r.attempt_id = w.attempt_id
  where w.tenant = v_lock.tenant and w.namespace = v_lock.namespace and w.name = v_lock.name
    and not exists (select 1 from fenceline.attempt_lock l
                    where l.tenant = w.tenant and l.namespace = w.namespace and l.name = w.name)
  order by w.seq limit 1;
  if v_next is not null then
    perform pg_notify('fenceline_lock', v_next::text);
  end if;
  return v_next;
end;
$$;
--- file: functions/replace_after.sql
-- An "after" option with other jobs in the place of some. p_by says which: by "@ref", or by internal id.
-- roles: none
create or replace function fenceline.replace_after(p_after jsonb, p_by jsonb) returns jsonb
language sql immutable parallel safe as $$
  with replaced as (
    select jsonb_agg(coalesce(p_by -> case when a #>> '{}' like '@%' then a #>> '{}'
                                           else fenceline.read_job_id(a)::text end, a)) as jobs
    from jsonb_array_elements(fenceline.after_list(p_after)) a
  )
  select case jsonb_typeof(p_after)
           when 'object' then p_after || jsonb_build_object('jobs', coalesce(replaced.jobs, '[]'))
           else coalesce(replaced.jobs, p_after) end
  from replaced;
$$;
--- file: functions/report_attempts.sql
-- What many live attempts have to report, in one statement: log lines (write_log) and progress (set_progress).
--
-- p_lines     per attempt a JSON array of lines, or null
-- p_progress  per attempt {"phase", "progress"}, or null
-- Returns the attempts that are stale; of those nothing was written. Raises as write_log and set_progress do.
-- Lock order: running rows by job id, as everybody who locks several.
-- roles: worker
create or replace function fenceline.report_attempts(
  p_job_ids bigint[],
  p_attempt_ids uuid[],
  p_lines jsonb[],
  p_progress jsonb[] default null
) returns table (attempt_id uuid)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_given record;
begin
  for v_given in
    select g.job_id, g.attempt_id, g.lines, g.progress
    from unnest(p_job_ids, p_attempt_ids, p_lines, p_progress) g(job_id, attempt_id, lines, progress)
    order by g.job_id
  loop
    if (v_given.lines is not null and not fenceline.write_log(v_given.job_id, v_given.attempt_id, v_given.lines))
       or (v_given.progress is not null
           and not fenceline.set_progress(v_given.job_id, v_given.attempt_id, v_given.progress ->> 'phase',
                                          nullif(v_given.progress -> 'progress', 'null'))) then
      attempt_id := v_given.attempt_id;
      return next;
    end if;
  end loop;
end;
$$;
--- file: functions/report_crash.sql
-- A worker process died, and its supervisor says so at once instead of waiting for the lease.
--
-- p_suspects  the attempts whose handlers were running; null: all it held. The others are released.
-- One suspect: it killed its process alone (see end_crashed). Several: any of them may have done it, so all are refunded
-- and rerun alone. Returns how many attempts were ended.
-- Lock order: worker row, running rows.
-- roles: worker
create or replace function fenceline.report_crash(
  p_worker_id integer,
  p_suspects uuid[] default null,
  p_error jsonb default null
) returns integer
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_runs fenceline.running[];
  v_run fenceline.running;
  v_suspects integer;
begin
  -- Waits for a claim in flight (claim_jobs locks the row too), so that its attempts are seen below.
  perform 1 from fenceline.worker w where w.id = p_worker_id for update;
  update fenceline.worker set stopped_at = fenceline.clock() where id = p_worker_id and stopped_at is null;
  delete from fenceline.waiter where worker_id = p_worker_id;
  with gone as (delete from fenceline.running r where r.worker_id = p_worker_id returning r)
  select array_agg(g.r), count(*) filter (where p_suspects is null or (g.r).attempt_id = any(p_suspects))
    into v_runs, v_suspects
  from gone g;
  foreach v_run in array coalesce(v_runs, '{}') loop
    if p_suspects is not null and v_run.attempt_id <> all(p_suspects) then
      perform fenceline.settle_if_final(v_run, fenceline.end_attempt(v_run, 'released',
        p_metadata => '{"reason": "its process died"}'));
    else
      perform fenceline.end_crashed(v_run, coalesce(v_run.deaths, 0) + case when v_suspects = 1 then 1 else 0 end, p_error);
    end if;
  end loop;
  return coalesce(cardinality(v_runs), 0);
end;
$$;
--- file: functions/reprioritise_job.sql
-- Changes the priority of a job that no worker holds. Returns the priority it had. Raises FL003, FL010, FL011.
-- roles: admin
create or replace function fenceline.reprioritise_job(
  p_job_id bigint,
  p_priority integer,
  p_actor text default null,
  p_tenant text default null
) returns integer
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_job fenceline.job := fenceline.find_job(p_job_id, p_tenant);
  v_before integer;
begin
  if p_priority is null or p_priority not between -32768 and 32767 then
    raise exception using errcode = 'FL003',
      message = format('priority %s is out of range: use a whole number from -32768 to 32767', p_priority);
  end if;
  loop
    -- In a lane with ageing the rank moves by the difference (see place_jobs).
    update fenceline.ready r
    set priority = case when r.own_priority is null then p_priority else 0 end,
        own_priority = case when r.own_priority is not null then p_priority end,
        seq = case when r.own_priority is null then r.seq
                   else fenceline.aged_seq(r.seq, p_priority - r.own_priority,
                          (select n.ageing_seconds from fenceline.lane n where n.name = r.lane)) end
    from fenceline.ready old
    where r.job_id = p_job_id and old.job_id = r.job_id
    returning coalesce(old.own_priority, old.priority) into v_before;
    exit when found;
    update fenceline.timer t set priority = p_priority from fenceline.timer old
    where t.job_id = p_job_id and old.job_id = t.job_id returning old.priority into v_before;
    exit when found;
    update fenceline.held h set priority = p_priority from fenceline.held old
    where h.job_id = p_job_id and old.job_id = h.job_id returning old.priority into v_before;
    exit when found;
    perform fenceline.find_job(p_job_id, p_tenant);  -- it may have been deleted meanwhile
    if fenceline.job_status(p_job_id) not in ('queued', 'scheduled', 'waiting', 'awaiting_approval') then
      perform fenceline.wrong_status(p_job_id, 'reprioritised', 'unclaimed');
    end if;
  end loop;
  perform fenceline.tell_followers(array[p_job_id]);
  perform fenceline.record_event(p_actor, 'job.reprioritise', fenceline.public_id(p_job_id), v_job.tenant, null,
    jsonb_build_object('priority', v_before), jsonb_build_object('priority', p_priority));
  return v_before;
end;
$$;
--- file: functions/rerank_lane.sql
-- Orders the queued jobs of a lane anew after its ageing has changed. Caller holds the lane's lock.
-- roles: none
create or replace function fenceline.rerank_lane(p_lane text, p_old_ageing integer, p_new_ageing integer) returns void
language sql as $$
  update fenceline.ready r
  set seq = fenceline.aged_seq(fenceline.aged_seq(r.seq, -coalesce(r.own_priority, 0), p_old_ageing),
                               coalesce(r.own_priority, r.priority), p_new_ageing),
      priority = case when p_new_ageing is null then coalesce(r.own_priority, r.priority) else 0 end,
      own_priority = case when p_new_ageing is not null then coalesce(r.own_priority, r.priority) end
  where r.lane = p_lane;
$$;
--- file: functions/restore_lanes.sql
-- Makes lanes anew that have jobs and do not exist: an enqueue waits for nobody, so one that was open while its lane was
-- deleted leaves a job that no worker would ever look for. Jobs that wait elsewhere come through `ready`, too.
-- Plan: hops from the first job of one lane to the first of the next in ready_order, however many jobs there are and
-- whatever the statistics say.
-- roles: none
create or replace function fenceline.restore_lanes() returns void
language plpgsql set enable_seqscan = off set enable_sort = off as $$
declare
  v_lane fenceline.lane;
begin
  for v_lane in
    with recursive used as (
      (select r.lane from fenceline.ready r order by r.lane limit 1)
      union all
      select f.lane from used u
      cross join lateral (select r.lane from fenceline.ready r where r.lane > u.lane order by r.lane limit 1) f
    )
    insert into fenceline.lane (name) select u.lane from used u
    where not exists (select 1 from fenceline.lane n where n.name = u.lane)
    on conflict do nothing
    returning *
  loop
    perform fenceline.record_event(null, 'lane.create', v_lane.name, null, 'jobs came in while it was deleted', null,
                                   fenceline.lane_json(v_lane));
  end loop;
end;
$$;
--- file: functions/retention_of.sql
-- How long a finished job is kept: an operator's word for its kind and status, else the decorator's, else the setting.
-- roles: none
create or replace function fenceline.retention_of(p_kind text, p_status text) returns interval
language sql stable as $$
  select make_interval(secs => coalesce(
    (select coalesce(k.operator_retention ->> p_status, k.retention ->> p_status)::double precision
     from fenceline.kind k where k.name = p_kind),
    (select s.retention_seconds from fenceline.setting s)));
$$;
--- file: functions/retry_delay.sql
-- Seconds to wait after attempt p_number failed.
--
-- p_policy    {"backoff": "quadratic" | "exponential" | "fixed" | [s1, s2, …], "base": seconds, "jitter": 0..1,
--             "max_delay": seconds}; null is the default: quadratic, base 2, jitter 0.1, at most a day
-- quadratic: base × n²; exponential: base × 2^(n-1); fixed: base; a list: its nth delay, then its last.
-- Jitter adds up to that share of the delay, so that what failed together does not come back together.
-- Raises FL007 for a policy that cannot be read.
-- roles: producer, worker, reader
create or replace function fenceline.retry_delay(p_policy jsonb, p_number integer) returns double precision
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_backoff jsonb := coalesce(p_policy -> 'backoff', '"quadratic"');
  v_base double precision;
  v_jitter double precision;
  v_most double precision;
  v_delay double precision;
  v_n double precision := greatest(p_number, 1);
begin
  if p_policy is not null and (jsonb_typeof(p_policy) <> 'object'
     or p_policy - array['backoff', 'base', 'jitter', 'max_delay', 'max_attempts'] <> '{}') then
    raise exception using errcode = 'FL007',
      message = format('retry policy %s is not valid: use an object with backoff, base, jitter and max_delay',
                       left(p_policy::text, 200));
  end if;
  begin
    v_base := coalesce((p_policy ->> 'base')::double precision, 2.0);
    v_jitter := coalesce((p_policy ->> 'jitter')::double precision, 0.1);
    v_most := coalesce((p_policy ->> 'max_delay')::double precision, 86400);
    v_delay := case
      when jsonb_typeof(v_backoff) = 'array' then
        (v_backoff ->> (least(v_n, jsonb_array_length(v_backoff))::integer - 1))::double precision
      when v_backoff = '"quadratic"' then v_base * v_n * v_n
      when v_backoff = '"exponential"' then v_base * power(2, least(v_n, 60) - 1)
      when v_backoff = '"fixed"' then v_base end;
  exception when data_exception then
    v_delay := null;
  end;
  -- The whole policy is judged, not only this attempt's delay: a failing job must not meet the mistake first.
  if v_delay is null or v_base not between 0 and 1e9 or v_jitter not between 0 and 1 or v_most not between 0 and 1e9
     or (jsonb_typeof(v_backoff) = 'array' and jsonb_path_exists(
           v_backoff, 'strict $[*] ? (@.type() != "number" || @ < 0 || @ > 1000000000)')) then
    raise exception using errcode = 'FL007',
      message = format('retry policy %s is not valid: backoff is "quadratic", "exponential", "fixed" or a list of '
                       'seconds; seconds are 0 to 1000000000; jitter is 0 to 1', left(p_policy::text, 200));
  end if;
  return least(v_delay * (1 + v_jitter * random()), v_most);
end;
$$;
--- file: functions/retry_job.sql
-- Runs a finished job again as a new job with the same args, snapshot and policy, linked by retry_of. What
-- needed approval needs it again, so that nobody goes round it. It goes on where the old one stopped: finished steps and
-- the checkpoint are its own from the start.
-- Returns the new job's ids. Raises FL010, FL011 (unfinished), FL013 (its resource is locked), FL014 (draining), FL023,
-- FL055 (its args were erased).
-- roles: producer, worker
create or replace function fenceline.retry_job(
  p_job_id bigint,
  p_actor text default null,
  p_tenant text default null,
  out id text,
  out job_id bigint
)
language plpgsql security definer set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan as $$
declare
  v_job fenceline.job := fenceline.find_job(p_job_id, p_tenant);
  v_made record;
begin
  if not exists (select 1 from fenceline.history h where h.job_id = p_job_id and h.final) then
    perform fenceline.wrong_status(p_job_id, 'retried', 'finished');
  end if;
  if fenceline.is_erased(v_job.args) then
    raise exception using errcode = 'FL055', message = format(
      'job %s cannot be retried: its args were erased. Enqueue a new job instead', fenceline.public_id(p_job_id));
  end if;
  v_made := fenceline.insert_jobs(v_job.kind, array[v_job.args], (jsonb_strip_nulls(jsonb_build_object(
      'lane', v_job.lane, 'priority', v_job.priority, 'max_attempts', v_job.max_attempts, 'tenant', v_job.tenant,
      'labels', v_job.labels, 'timeout', v_job.timeout_seconds, 'resource_lock', v_job.resource_lock, 'key', v_job.key,
      'key_limit', v_job.key_limit, 'requires_hash', v_job.requires_hash, 'identity', v_job.identity,
      'retry', v_job.retry, 'parent', v_job.parent, 'delivery', v_job.delivery, 'retry_of', p_job_id,
      'needs_approval', v_job.needs_approval))
      || case when v_job.snapshot is null then '{}' else jsonb_build_object('snapshot', v_job.snapshot) end)::json,
    p_actor, null, 'outside');
  job_id := v_made.job_ids[1];
  id := fenceline.public_id(job_id);
  perform fenceline.inherit_work(p_job_id, job_id);
  perform fenceline.record_event(p_actor, 'job.retry', fenceline.public_id(p_job_id), v_job.tenant, null,
    jsonb_build_object('status', fenceline.job_status(p_job_id)), jsonb_build_object('job', id));
end;
$$;
--- file: functions/revoke_token.sql
-- Revokes a token, for good; harmless to repeat. Returns it. Raises FL041 when it is not there, or in another tenant than
-- p_tenant (null: any).
-- roles: admin
create or replace function fenceline.revoke_token(p_id integer, p_actor text default null, p_tenant text default null)
returns jsonb
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_token fenceline.token;
  v_before jsonb;
begin
  select * into v_token from fenceline.token t where t.id = p_id and (p_tenant is null or t.tenant = p_tenant) for update;
  if not found then
    raise exception using errcode = 'FL041', message = format('token %s does not exist', p_id);
  end if;
  if v_token.revoked_at is null then
    v_before := fenceline.token_json(v_token);
    update fenceline.token t set revoked_at = fenceline.clock() where t.id = p_id returning * into v_token;
    perform fenceline.record_event(p_actor, 'token.revoke', 'token ' || p_id, v_token.tenant, null, v_before,
      fenceline.token_json(v_token));
  end if;
  return fenceline.token_json(v_token);
end;
$$;
--- file: functions/run_schedule.sql
-- Enqueues a schedule's job now, beside its ticks; also while it is paused or in a window, because somebody asked for it.
-- Returns the job's internal id and whether this call made it (false: its dedupe key found another).
-- Raises FL030, and what enqueue raises.
-- roles: admin
create or replace function fenceline.run_schedule(
  p_name text,
  p_actor text default null,
  out job_id bigint,
  out created boolean
)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_schedule fenceline.schedule;
begin
  select * into v_schedule from fenceline.schedule s where s.name = p_name;
  if not found then
    raise exception using errcode = 'FL030', message = format('schedule %L does not exist', p_name);
  end if;
  select e.job_id, e.created into run_schedule.job_id, run_schedule.created
  from fenceline.enqueue_scheduled(v_schedule, null) e;
  perform fenceline.record_event(p_actor, 'schedule.run', p_name, v_schedule.options ->> 'tenant', null, null,
    jsonb_build_object('job', fenceline.public_id(job_id)));
end;
$$;
--- file: functions/runner_heartbeat.sql
-- A heartbeat of somebody's runner (heartbeat), answered as its server answers: {"cancel": attempts asked to stop, "grace":
-- the seconds that each of those has left, "stale": attempts that are gone, "lease_seconds"}.
--
-- p_held      as in heartbeat; null: only the lease is renewed
-- Raises FL065 and FL015 as own_runner.
-- Lock order: as heartbeat.
-- roles: worker
create or replace function fenceline.runner_heartbeat(p_runner_id integer, p_owner text, p_held uuid[] default null)
returns json
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_said record;
begin
  select coalesce(bool_or(h.word = 'lost'), false) as lost,
         coalesce(json_agg(h.attempt_id) filter (where h.word = 'stale'), '[]') as stale
    into v_said
  from fenceline.heartbeat(array[fenceline.own_runner(p_runner_id, p_owner)], p_held) h;
  if v_said.lost then
    raise exception using errcode = 'FL015',
      message = format('runner %s has signed off, or its lease is over: register again', p_runner_id);
  end if;
  return (
    select json_build_object(
      'cancel', coalesce(json_agg(r.attempt_id) filter (where r.job_id is not null), '[]'),
      'grace', coalesce(json_object_agg(r.attempt_id, greatest(extract(epoch from r.cancel_deadline - fenceline.clock()), 0))
                        filter (where r.job_id is not null), '{}'),
      'stale', v_said.stale, 'lease_seconds', min(w.lease_seconds))
    from fenceline.worker w
    left join fenceline.running r on r.worker_id = w.id and r.cancel_deadline is not null
    where w.id = p_runner_id);
end;
$$;
--- file: functions/save_checkpoint.sql
-- Keeps the state from which the next attempt, or a retry as a new job, goes on. Raises FL012, FL005.
-- roles: worker
create or replace function fenceline.save_checkpoint(p_job_id bigint, p_attempt_id uuid, p_state jsonb) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_run fenceline.running;
begin
  perform fenceline.check_size('the checkpoint', p_state);
  v_run := fenceline.live_attempt(p_job_id, p_attempt_id);
  insert into fenceline.checkpoint as c (job_id, state, token, updated_at)
  values (p_job_id, coalesce(p_state, 'null'), v_run.token, fenceline.clock())
  on conflict (job_id) do update set state = excluded.state, token = excluded.token, updated_at = excluded.updated_at;
end;
$$;
--- file: functions/schedule_json.sql
-- A schedule as JSON, with the time at which it was looked at.
-- roles: none
create or replace function fenceline.schedule_json(p_schedule fenceline.schedule) returns jsonb
language sql stable as $$
  select to_jsonb(p_schedule) - array['due_at', 'declared', 'last_job'] || jsonb_build_object(
    'tenant', coalesce(p_schedule.options ->> 'tenant', 'default'),
    'source', case when p_schedule.declared is null then 'operator' else 'code' end,
    'last_job', fenceline.public_id(p_schedule.last_job),
    'now', fenceline.clock());
$$;
--- file: functions/schema_version.sql
-- Which schema this is, for a program that asks at start whether it fits.
-- Returns number, the highest migration applied, and compatible_from, the lowest number a program must know.
-- Reads migration.
-- roles: producer, worker, reader
create or replace function fenceline.schema_version(out number integer, out compatible_from integer)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select coalesce(max(m.number), 0), coalesce(max(m.compatible_from), 0) from fenceline.migration m;
$$;
--- file: functions/set_lane.sql
-- Changes a lane, or creates it; takes effect with the next claim. Returns the lane as it is afterwards.
--
-- p_changes   any of slots poll_interval_ms stale_timeout_seconds on_stale enabled rate_per_second burst fair
--             ageing_seconds default_priority kinds; null clears. "kinds" is the whole list: kinds that are new in it
--             move here with their unclaimed jobs, kinds that left it go by their decorators from now on.
-- p_create    true: it must be new; false: it must exist; null: either
-- p_actor_tenant   the actor's tenant, for the audit: lanes themselves belong to all
-- Raises FL001, FL002, FL018 (bad setting), FL046 (the lane is there already).
-- Waits for claims of this lane in flight (the lane's lock), so that a limit holds for every claim after the change.
-- roles: admin
create or replace function fenceline.set_lane(
  p_name text,
  p_changes jsonb default '{}',
  p_actor text default null,
  p_create boolean default null,
  p_actor_tenant text default null
) returns jsonb
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_old fenceline.lane;
  v_new fenceline.lane;
  v_before jsonb;
  v_bad text;
begin
  perform fenceline.check_name('lane', p_name);
  if jsonb_typeof(p_changes) is distinct from 'object' then
    raise exception using errcode = 'FL018', message = format('changes of lane %L must be a JSON object', p_name);
  end if;
  select string_agg(k, ', ') into v_bad from jsonb_object_keys(p_changes) k
  where k <> all (array['slots', 'poll_interval_ms', 'stale_timeout_seconds', 'on_stale', 'enabled', 'rate_per_second',
                        'burst', 'fair', 'ageing_seconds', 'default_priority', 'kinds']);
  if v_bad is not null then
    raise exception using errcode = 'FL018', message = format('lane %L has no setting %s', p_name, v_bad);
  end if;
  perform pg_advisory_xact_lock(1179926085, hashtext(p_name));
  select * into v_old from fenceline.lane l where l.name = p_name for update;
  if found and p_create then
    raise exception using errcode = 'FL046', message = format('lane %L exists already', p_name);
  elsif not found then
    if p_create is false then
      raise exception using errcode = 'FL001', message = format('lane %L does not exist', p_name);
    end if;
    insert into fenceline.lane (name) values (p_name) returning * into v_old;
  else
    v_before := fenceline.lane_json(v_old);
  end if;

  begin
    v_new := jsonb_populate_record(v_old, p_changes - 'kinds');
    update fenceline.lane l
    set slots = v_new.slots, poll_interval_ms = v_new.poll_interval_ms,
        stale_timeout_seconds = v_new.stale_timeout_seconds, on_stale = v_new.on_stale, enabled = v_new.enabled,
        rate_per_second = v_new.rate_per_second, burst = v_new.burst, fair = v_new.fair,
        ageing_seconds = v_new.ageing_seconds, default_priority = v_new.default_priority
    where l.name = p_name;
  exception when data_exception or check_violation or not_null_violation then
    raise exception using errcode = 'FL018',
      message = format('lane %L cannot be set to %s: %s', p_name, left(p_changes::text, 200), sqlerrm);
  end;

  if v_new.ageing_seconds > 32767 then
    -- priority × ageing must fit into a seq (aged_seq).
    raise exception using errcode = 'FL018',
      message = format('ageing_seconds %s of lane %L is out of range: use 1 to 32767', v_new.ageing_seconds, p_name);
  end if;
  if v_new.slots is not null or v_new.stale_timeout_seconds is not null then
    update fenceline.running r set counted = true where r.lane = p_name and r.counted is null;
  end if;
  if v_new.fair is distinct from v_old.fair then
    update fenceline.ready r set fair = nullif(v_new.fair, false) where r.lane = p_name;
  end if;
  if v_new.ageing_seconds is distinct from v_old.ageing_seconds then
    perform fenceline.rerank_lane(p_name, v_old.ageing_seconds, v_new.ageing_seconds);
  end if;
  if p_changes ? 'kinds' then
    perform fenceline.move_kinds(p_name, p_changes -> 'kinds');
  end if;
  perform fenceline.record_event(p_actor, case when v_before is null then 'lane.create' else 'lane.change' end, p_name,
    p_actor_tenant, null, v_before, fenceline.lane_json(v_new));
  perform fenceline.wake(array[p_name]);
  return fenceline.lane_json(v_new);
end;
$$;
--- file: functions/set_progress.sql
-- Records phase and progress of a live attempt; a new phase starts with empty progress. Returns false when stale.
-- Raises FL005 (progress over the limit for results), FL007 (no text, or one over 200 characters, as phase).
--
-- p_phase     null: the phase stays
-- p_progress  null: the progress stays, unless the phase is new. Items (move_items) stay with the phase
-- roles: worker
create or replace function fenceline.set_progress(
  p_job_id bigint,
  p_attempt_id uuid,
  p_phase text default null,
  p_progress jsonb default null
) returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_now timestamptz := fenceline.clock();
begin
  if length(p_phase) not between 1 and 200 then
    raise exception using errcode = 'FL007',
      message = format('phase %L is not valid: use 1 to 200 characters', left(p_phase, 80));
  end if;
  perform fenceline.check_size('the progress', p_progress);
  update fenceline.running r set active_at = v_now where r.job_id = p_job_id and r.attempt_id = p_attempt_id;
  if not found then
    return false;
  end if;
  insert into fenceline.progress as p (job_id, attempt_id, phase, progress, updated_at)
  values (p_job_id, p_attempt_id, p_phase, p_progress, v_now)
  on conflict (job_id) do update set
    attempt_id = excluded.attempt_id,
    phase = coalesce(excluded.phase, case when p.attempt_id = excluded.attempt_id then p.phase end),
    progress = case
      when p.attempt_id = excluded.attempt_id and coalesce(excluded.phase = p.phase, excluded.phase is null)
      then coalesce(case when p.progress ? 'items' then jsonb_build_object('items', p.progress -> 'items') end
                    || excluded.progress, excluded.progress, p.progress)
      else excluded.progress end,
    updated_at = v_now;
  if exists (select 1 from fenceline.follow) then
    perform fenceline.tell_followers(array[p_job_id]);
  end if;
  return true;
end;
$$;
--- file: functions/set_retention.sql
-- Sets how long finished jobs are kept; takes effect with the next prune. Audited.
--
-- p_seconds   null: back to what the decorator or the default says
-- p_kind      null: the default of all kinds, for every status
-- p_status    one end of the kind's jobs (succeeded, failed …); null: all four
-- Raises FL002, FL007. A kind need not have been declared yet.
-- roles: admin
create or replace function fenceline.set_retention(
  p_seconds double precision,
  p_kind text default null,
  p_status text default null,
  p_actor text default null
) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_before jsonb;
  v_after jsonb;
begin
  if p_seconds is not null and not p_seconds between 0 and 2147483647 then
    raise exception using errcode = 'FL007',
      message = format('a retention of %s seconds is out of range: use 0 to 2147483647', p_seconds);
  end if;
  if p_status is not null and p_status <> all (array['succeeded', 'succeeded_with_errors', 'failed', 'cancelled']) then
    raise exception using errcode = 'FL007', message = format(
      'status %L is not an end: use succeeded, succeeded_with_errors, failed or cancelled', p_status);
  end if;
  if p_kind is null then
    if p_seconds is null or p_status is not null then
      raise exception using errcode = 'FL007',
        message = 'the default retention is one number of seconds for every status: name a kind to set one status of it';
    end if;
    select to_jsonb(s.retention_seconds) into v_before from fenceline.setting s for update;
    update fenceline.setting set retention_seconds = round(p_seconds);
    v_after := to_jsonb(round(p_seconds));
  else
    perform fenceline.check_name('kind', p_kind);
    insert into fenceline.kind (name) values (p_kind) on conflict do nothing;
    select k.operator_retention into v_before from fenceline.kind k where k.name = p_kind for update;
    select coalesce(v_before, '{}') - array_agg(s)
           || case when p_seconds is null then '{}' else jsonb_object_agg(s, p_seconds) end
      into v_after
    from unnest(case when p_status is null then array['succeeded', 'succeeded_with_errors', 'failed', 'cancelled']
                     else array[p_status] end) s;
    v_after := nullif(v_after, '{}');
    update fenceline.kind set operator_retention = v_after where name = p_kind;
  end if;
  perform fenceline.record_event(p_actor, 'retention.change', coalesce(p_kind, 'default'), null, null, v_before, v_after);
end;
$$;
--- file: functions/set_role.sql
-- Creates or changes a role of the database's own; those that were seeded stay as they are.
--
-- p_permissions   the whole list; null: as before (none for a new role)
-- p_own_jobs      whether its job verbs reach only what its actor enqueued; null: as before (true for a new role)
-- p_create        true: it must be new; false: it must exist; null: either
-- p_granter_permissions   as in create_token
-- Returns the role as list_roles shows it. Raises FL002, FL040, FL042 (unknown permission), FL043, FL044 (exists),
-- FL045 (built in).
-- roles: admin
create or replace function fenceline.set_role(
  p_name text,
  p_permissions text[] default null,
  p_own_jobs boolean default null,
  p_actor text default null,
  p_create boolean default null,
  p_granter_permissions text[] default null,
  p_actor_tenant text default null
) returns jsonb
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_role fenceline.role;
  v_before jsonb;
  v_bad text;
begin
  perform fenceline.check_name('role', p_name);
  select string_agg(p, ', ') into v_bad from unnest(p_permissions) p where p <> all(fenceline.known_permissions());
  if v_bad is not null or array_position(p_permissions, null) is not null then
    raise exception using errcode = 'FL042',
      message = format('permission %s is unknown', coalesce(left(v_bad, 200), 'null')),
      hint = 'Permissions are ' || array_to_string(fenceline.known_permissions(), ', ') || '.';
  end if;
  perform fenceline.check_role_owner(p_granter_permissions);
  insert into fenceline.role (name, permissions) values (p_name, '{}') on conflict do nothing;
  if found then
    if p_create is false then
      raise exception using errcode = 'FL040', message = format('role %L does not exist', p_name);
    end if;
  elsif p_create then
    raise exception using errcode = 'FL044', message = format('role %L exists already', p_name);
  else
    select to_jsonb(r) into v_before from fenceline.role r where r.name = p_name for update;
  end if;
  if (v_before ->> 'built_in')::boolean then
    raise exception using errcode = 'FL045', message = format('role %L is built in and stays as it is', p_name),
      hint = 'Make a role of your own.';
  end if;
  update fenceline.role r
  set permissions = case when p_permissions is null then r.permissions
                         else array(select distinct p from unnest(p_permissions) p order by p) end,
      own_jobs = coalesce(p_own_jobs, r.own_jobs)
  where r.name = p_name
  returning * into v_role;
  perform fenceline.record_event(p_actor, case when v_before is null then 'role.create' else 'role.change' end,
    'role ' || p_name, p_actor_tenant, null, v_before, to_jsonb(v_role));
  return to_jsonb(v_role);
end;
$$;
--- file: functions/set_schedule.sql
-- Changes a schedule, or creates it, as an operator: what is said here survives programs that declare the schedule
-- otherwise. Returns the schedule as it is afterwards; its next tick is computed by a scheduler within a second.
--
-- p_changes   any of kind args options cron every timezone misfire misfire_limit windows paused. Null takes the operator's
--             word back: then the code's counts, or the default. cron and every replace each other.
-- p_create    true: it must be new; false: it must exist; null: either
-- Raises FL002, FL030, FL031, and what an enqueue with such options raises.
-- roles: admin
create or replace function fenceline.set_schedule(
  p_name text,
  p_changes jsonb default '{}',
  p_actor text default null,
  p_create boolean default null
) returns jsonb
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_old fenceline.schedule;
  v_new fenceline.schedule;
  v_overrides jsonb;
begin
  perform fenceline.check_name('schedule', p_name);
  if jsonb_typeof(p_changes) is distinct from 'object' then
    raise exception using errcode = 'FL031', message = format('changes of schedule %L must be a JSON object', p_name);
  end if;
  perform pg_advisory_xact_lock(1179926089, hashtext(p_name));  -- two that would create it
  select * into v_old from fenceline.schedule s where s.name = p_name for update;
  if found and p_create then
    raise exception using errcode = 'FL031', message = format('schedule %L exists already', p_name);
  elsif v_old.name is null and p_create is false then
    raise exception using errcode = 'FL030', message = format('schedule %L does not exist', p_name);
  end if;

  v_overrides := coalesce(v_old.overrides, '{}');
  if p_changes ?| array['cron', 'every'] then
    v_overrides := v_overrides - array['cron', 'every'];
  end if;
  v_overrides := coalesce(
    (select jsonb_object_agg(e.key, e.value) from jsonb_each(v_overrides || p_changes) e where e.value <> 'null'), '{}');
  v_new := fenceline.store_schedule(p_name, v_old, v_old.declared, v_overrides, p_actor);
  perform fenceline.record_event(p_actor, case when v_old.name is null then 'schedule.create' else 'schedule.change' end,
    p_name, v_new.options ->> 'tenant', null,
    case when v_old.name is not null then coalesce(v_old.declared, '{}') || v_old.overrides end,
    coalesce(v_new.declared, '{}') || v_new.overrides);
  return fenceline.schedule_json(v_new);
end;
$$;
--- file: functions/set_tenant_limit.sql
-- Sets how many unfinished jobs a tenant may have: more from outside are refused (FL023). Takes effect at once. Audited.
--
-- p_max_jobs  null: no limit of its own any more; for the default: no limit
-- p_tenant    null: the default of every tenant that has none of its own
-- Raises FL002, FL007.
-- roles: admin
create or replace function fenceline.set_tenant_limit(
  p_max_jobs integer,
  p_tenant text default null,
  p_actor text default null
) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_before integer;
begin
  if p_max_jobs < 0 then
    raise exception using errcode = 'FL007',
      message = format('a limit of %s jobs is out of range: use 0 or more, or null for none', p_max_jobs);
  end if;
  select s.max_tenant_jobs into v_before from fenceline.setting s for update;  -- one at a time: the flag is about all
  if p_tenant is null then
    update fenceline.setting set max_tenant_jobs = p_max_jobs;
  else
    perform fenceline.check_name('tenant', p_tenant);
    select l.max_jobs into v_before from fenceline.tenant_limit l where l.tenant = p_tenant;
    delete from fenceline.tenant_limit l where l.tenant = p_tenant;
    insert into fenceline.tenant_limit (tenant, max_jobs) select p_tenant, p_max_jobs where p_max_jobs is not null;
  end if;
  update fenceline.setting
  set limits_tenants = max_tenant_jobs is not null or exists (select 1 from fenceline.tenant_limit);
  -- What was counted before there was a limit, is old.
  perform fenceline.count_tenants(1) from fenceline.setting s where s.limits_tenants;
  perform fenceline.record_event(p_actor, 'tenant.limit', coalesce(p_tenant, 'default'), p_tenant, null,
    jsonb_build_object('max_jobs', v_before), jsonb_build_object('max_jobs', p_max_jobs));
end;
$$;
--- file: functions/settle.sql
-- What follows when jobs have ended: locks and keys are freed, who waits for them is told or advanced.
-- Every terminal write calls it, in its own transaction. p_uses: or of the jobs' `uses` (63: unknown).
-- A waiter that can no longer run ends here too, and so do its waiters: round by round, not by recursion, because
-- chains are long.
-- Lock order: held rows by job id.
-- roles: none
create or replace function fenceline.settle(p_job_ids bigint[], p_uses integer) returns void
language plpgsql as $$
declare
  v_round bigint[] := p_job_ids;
  v_uses integer := coalesce(p_uses, 0);
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    -- This snapshot may be older than a waiter: verify_dependencies looks again when this has been committed.
    insert into fenceline.dependency_check (waiter_id) select i from unnest(p_job_ids) i on conflict do nothing;
  end if;
  while v_round is not null loop
    if v_uses & 2 <> 0 then
      delete from fenceline.resource_lock where job_id = any(v_round);
    end if;
    if v_uses & 8 <> 0 then
      perform fenceline.free_keys(v_round);
    end if;
    if v_uses & 16 <> 0 then
      delete from fenceline.deadline where job_id = any(v_round);
    end if;
    perform fenceline.tell_watchers(v_round);
    if exists (select 1 from fenceline.follow) then
      perform fenceline.tell_followers(v_round);
    end if;
    if exists (select 1 from fenceline.hook) then
      perform fenceline.enqueue_hooks(v_round);
    end if;
    v_round := fenceline.advance_waiters(v_round);
    v_uses := 63;
  end loop;
end;
$$;
--- file: functions/settle_if_final.sql
-- settle, for one attempt that end_attempt has just ended; does nothing when the job goes on (outcome null).
-- roles: none
create or replace function fenceline.settle_if_final(p_run fenceline.running, p_outcome text) returns void
language plpgsql as $$
begin
  if p_outcome is not null then
    perform fenceline.settle(array[p_run.job_id], p_run.uses);
  end if;
end;
$$;
--- file: functions/snapshot_hash.sql
-- SHA-256 (hex) of a snapshot's canonical spelling: equal configurations have equal hashes, however they were written.
-- roles: producer, worker, reader
create or replace function fenceline.snapshot_hash(p_snapshot jsonb) returns text
language sql immutable strict parallel safe as $$
  select encode(sha256(convert_to(fenceline.canonical_json(p_snapshot), 'UTF8')), 'hex');
$$;
--- file: functions/start_attempts.sql
-- Records that handlers have started: claimed → running. Returns the pairs that are stale.
-- p_ran_seconds   how long ago each started; null: now
-- roles: worker
create or replace function fenceline.start_attempts(
  p_job_ids bigint[],
  p_attempt_ids uuid[],
  p_ran_seconds double precision[] default null
) returns table (job_id bigint, attempt_id uuid)
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
declare
  v_now timestamptz := fenceline.clock();
begin
  return query
  with given as materialized (
    select g.job_id, g.attempt_id, g.ran_seconds
    from unnest(p_job_ids, p_attempt_ids, p_ran_seconds) g(job_id, attempt_id, ran_seconds)
  ), started as (
    update fenceline.running r
    set started_at = coalesce(r.started_at, v_now - make_interval(secs => coalesce(g.ran_seconds, 0)))
    from given g
    where r.job_id = g.job_id and r.attempt_id = g.attempt_id
    returning r.attempt_id
  )
  select g.job_id, g.attempt_id from given g
  where not exists (select 1 from started s where s.attempt_id = g.attempt_id);
  if exists (select 1 from fenceline.follow) then
    perform fenceline.tell_followers(p_job_ids);
  end if;
end;
$$;
--- file: functions/start_waiting.sql
-- Notes that a worker waits for a lane, so that enqueue notifies it. Written once per wait, not per poll.
-- roles: none
create or replace function fenceline.start_waiting(p_worker_id integer, p_lane text, p_seconds double precision,
                                                   p_now timestamptz) returns void
language sql as $$
  insert into fenceline.waiter (lane, worker_id, until)
  select p_lane, p_worker_id, p_now + make_interval(secs => p_seconds)
  where not exists (
    select 1 from fenceline.waiter w
    where w.lane = p_lane and w.worker_id = p_worker_id and w.until > p_now + make_interval(secs => p_seconds / 2))
  on conflict (lane, worker_id) do update set until = excluded.until;
$$;
--- file: functions/stop_worker.sql
-- Signs a worker off: whatever it still holds is released (attempts refunded), and it can claim no more.
--
-- p_fail_kinds   kinds whose handlers chose to fail instead of being run again when their worker is told to stop
-- Returns how many attempts were ended.
-- Lock order: worker row, running rows.
-- roles: worker
create or replace function fenceline.stop_worker(p_worker_id integer, p_fail_kinds text[] default null) returns integer
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_run fenceline.running;
  v_count integer := 0;
begin
  -- Waits for a claim in flight (claim_jobs locks the row too), so that its attempts are seen below.
  perform 1 from fenceline.worker w where w.id = p_worker_id for update;
  update fenceline.worker set stopped_at = fenceline.clock() where id = p_worker_id and stopped_at is null;
  delete from fenceline.waiter where worker_id = p_worker_id;
  for v_run in
    delete from fenceline.running r where r.worker_id = p_worker_id returning r.*
  loop
    v_count := v_count + 1;
    if (select j.kind from fenceline.job j where j.id = v_run.job_id) = any(p_fail_kinds) then
      perform fenceline.settle_if_final(v_run, fenceline.end_attempt(v_run, 'failed_for_good',
        p_error => '{"code": "shutdown", "message": "Worker received SIGTERM"}'));
    else
      perform fenceline.settle_if_final(v_run, fenceline.end_attempt(v_run, 'released',
        p_metadata => '{"reason": "worker stopped"}'));
    end if;
  end loop;
  return v_count;
end;
$$;
--- file: functions/store_schedule.sql
-- Writes a schedule whose declaration or overrides have changed: the one place where the two are put together. What
-- operators say is stronger, setting by setting; cron and every are one.
--
-- p_old       the row as it is, locked by the caller; its name is null when the schedule is new
-- Ticks are counted anew from this moment on when the timing has changed or a pause is over: what came before is not made
-- up for. Everything else leaves the next tick where it is.
-- Raises what read_schedule raises.
-- roles: none
create or replace function fenceline.store_schedule(p_name text, p_old fenceline.schedule, p_declared jsonb,
                                                    p_overrides jsonb, p_actor text)
returns fenceline.schedule
language plpgsql as $$
declare
  v_now timestamptz := fenceline.clock();
  v_said jsonb := coalesce(p_declared, '{}');
  v_new fenceline.schedule;
begin
  if p_overrides ?| array['cron', 'every'] then
    v_said := v_said - array['cron', 'every'];
  end if;
  v_new := fenceline.read_schedule(p_name, v_said || p_overrides);
  v_new.declared := p_declared;
  v_new.overrides := p_overrides;
  v_new.revision := coalesce(p_old.revision, 0) + 1;
  v_new.created_at := coalesce(p_old.created_at, v_now);
  v_new.changed_at := v_now;
  v_new.changed_by := p_actor;
  v_new.declared_at := p_old.declared_at;
  v_new.last_at := p_old.last_at;
  v_new.last_job := p_old.last_job;
  if (v_new.cron, v_new.every, v_new.timezone, v_new.paused)
     is not distinct from (p_old.cron, p_old.every, p_old.timezone, p_old.paused) then
    v_new.settled_at := p_old.settled_at;
    v_new.next_at := p_old.next_at;
    v_new.due_at := case when p_old.error is null then p_old.due_at else v_now end;
  else
    v_new.settled_at := v_now;
    v_new.due_at := case when v_new.paused then 'infinity'::timestamptz else v_now end;
  end if;

  if p_old.name is null then
    insert into fenceline.schedule select v_new.*;
    return v_new;
  end if;
  update fenceline.schedule s
  set kind = v_new.kind, args = v_new.args, options = v_new.options, cron = v_new.cron, every = v_new.every,
      timezone = v_new.timezone, misfire = v_new.misfire, misfire_limit = v_new.misfire_limit,
      windows = v_new.windows, paused = v_new.paused, declared = v_new.declared, overrides = v_new.overrides,
      revision = v_new.revision, settled_at = v_new.settled_at, next_at = v_new.next_at, due_at = v_new.due_at,
      error = null, changed_at = v_new.changed_at, changed_by = v_new.changed_by
  where s.name = p_name;
  return v_new;
end;
$$;
--- file: functions/submit_job.sql
-- Enqueues one job and returns it as the view `jobs` shows it: what HTTP answers with, in one round trip.
-- Parameters, and what it raises, as in enqueue; p_tenant is stronger than the options.
-- roles: producer, worker
create or replace function fenceline.submit_job(
  p_kind text,
  p_args json,
  p_options json,
  p_actor text,
  p_defaults json,
  p_tenant text,
  out id text,
  out created boolean,
  out job jsonb
)
language plpgsql security definer set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan as $$
declare
  v_made record;
begin
  -- No tenant is tenant `default`, and without options the enqueue is shorter.
  if p_tenant <> 'default' then
    p_options := (coalesce(p_options, '{}')::jsonb || jsonb_build_object('tenant', p_tenant))::json;
  end if;
  select * into v_made from fenceline.enqueue(p_kind, p_args, p_options, p_actor, p_defaults);
  id := fenceline.public_id(v_made.job_id);
  created := v_made.created;
  -- Nearly every new job is queued: with the status said, the plan has one arm of the view instead of all.
  select to_jsonb(v) - 'job_id' into job from fenceline.jobs v where v.job_id = v_made.job_id and v.status = 'queued';
  if not found then
    job := fenceline.get_job(v_made.job_id);
  end if;
end;
$$;
--- file: functions/submit_jobs.sql
-- Many times submit_job in one transaction, for callers who do not know of each other: one commit serves them all. All or
-- none: what it raises is about one of them, and then the caller submits them one by one.
-- Only for jobs whose enqueue waits for nobody: without dedupe key, idempotency key and resource lock.
-- Returns a row per job, in order.
-- roles: producer, worker
create or replace function fenceline.submit_jobs(
  p_kinds text[],
  p_args json[],
  p_options json[],
  p_actors text[],
  p_defaults json[],
  p_tenants text[]
) returns table (id text, created boolean, job jsonb)
language plpgsql security definer set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan as $$
begin
  for v_i in 1 .. coalesce(cardinality(p_kinds), 0) loop
    return query
    select s.id, s.created, s.job
    from fenceline.submit_job(p_kinds[v_i], p_args[v_i], p_options[v_i], p_actors[v_i], p_defaults[v_i], p_tenants[v_i]) s;
  end loop;
end;
$$;
--- file: functions/sweep.sql
-- Reclaims what nobody holds any more: attempts of workers whose lease is over, attempts whose cancel grace is over,
-- attempts that a lane calls stale. The fence is rotated first (the `running` row is deleted), then the job moves.
-- Returns how many attempts were ended.
-- Lock order: worker rows (skip locked), running rows (skip locked).
-- roles: worker
create or replace function fenceline.sweep() returns integer
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_now timestamptz := fenceline.clock();
  v_lost integer[];
  v_run fenceline.running;
  v_stale record;
  v_count integer := 0;
begin
  -- FOR UPDATE, so that a claim of a worker that is being swept waits and is then refused.
  v_lost := array(
    select w.id from fenceline.worker w where w.stopped_at is null and w.lease_until < v_now
    order by w.id for update skip locked);
  if cardinality(v_lost) > 0 then
    update fenceline.worker set stopped_at = v_now where id = any(v_lost);
    delete from fenceline.waiter where worker_id = any(v_lost);
    for v_run in delete from fenceline.running r where r.worker_id = any(v_lost) returning r.* loop
      v_count := v_count + 1;
      perform fenceline.settle_if_final(v_run, fenceline.end_attempt(v_run, 'lost', p_error => jsonb_build_object(
        'code', 'lost', 'message', 'the worker was not heard of until its lease ended')));
    end loop;
  end if;

  for v_run in
    delete from fenceline.running d where d.job_id = any(array(
      select r.job_id from fenceline.running r
      where r.cancel_deadline is not null and r.cancel_deadline <= v_now for update skip locked))
    returning d.*
  loop
    v_count := v_count + 1;
    perform fenceline.settle_if_final(v_run, fenceline.end_attempt(v_run, 'cancelled',
      p_error => fenceline.cancelled_error(v_run.cancel_reason)));
  end loop;

  for v_stale in
    select r.job_id, n.on_stale, n.stale_timeout_seconds
    from fenceline.lane n
    join fenceline.running r on r.lane = n.name and r.counted
      and coalesce(r.active_at, r.started_at, r.claimed_at) < v_now - make_interval(secs => n.stale_timeout_seconds)
    where n.stale_timeout_seconds is not null
    for update of r skip locked
  loop
    delete from fenceline.running r where r.job_id = v_stale.job_id returning * into v_run;
    v_count := v_count + 1;
    perform fenceline.settle_if_final(v_run, fenceline.end_attempt(v_run,
      case v_stale.on_stale when 'fail' then 'failed_for_good' else 'lost' end,
      p_error => jsonb_build_object('code', 'stale', 'message',
        format('no sign of life for %s seconds', v_stale.stale_timeout_seconds))));
  end loop;
  return v_count;
end;
$$;
--- file: functions/take_dedupe_key.sql
-- The job that owns a dedupe key: p_job_id if no unclaimed job has it, else that one.
-- roles: none
create or replace function fenceline.take_dedupe_key(p_tenant text, p_key text, p_job_id bigint) returns bigint
language plpgsql as $$
declare
  v_job_id bigint;
begin
  loop
    insert into fenceline.dedupe (tenant, key, job_id) values (p_tenant, p_key, p_job_id)
    on conflict (tenant, key) do nothing returning job_id into v_job_id;
    if not found then
      select d.job_id into v_job_id from fenceline.dedupe d where d.tenant = p_tenant and d.key = p_key;
    end if;
    exit when v_job_id is not null;  -- else the other job was claimed in between: the key is free again
  end loop;
  return v_job_id;
end;
$$;
--- file: functions/take_idempotency_key.sql
-- The job that owns an idempotency key: p_job_id if the key is new or its time is over, else the first one's.
-- roles: none
create or replace function fenceline.take_idempotency_key(p_tenant text, p_key text, p_job_id bigint,
                                                          p_now timestamptz)
returns bigint
language plpgsql as $$
declare
  v_job_id bigint;
  v_seconds integer := (select idempotency_seconds from fenceline.setting);
begin
  loop
    insert into fenceline.idempotency (tenant, key, job_id, expires_at)
    values (p_tenant, p_key, p_job_id, p_now + make_interval(secs => v_seconds))
    on conflict (tenant, key) do update set job_id = excluded.job_id, expires_at = excluded.expires_at
      where idempotency.expires_at <= p_now
    returning job_id into v_job_id;
    if not found then
      select i.job_id into v_job_id from fenceline.idempotency i where i.tenant = p_tenant and i.key = p_key;
    end if;
    exit when v_job_id is not null;  -- else it was pruned in between
  end loop;
  return v_job_id;
end;
$$;
--- file: functions/take_lock.sql
-- Takes a named lock for one block of a live attempt, or takes a place in the line for it. Who waits calls again: when
-- notified (channel fenceline_lock) and from time to time. A lock belongs to its attempt and holds nothing once that is
-- gone, however it ended.
--
-- p_owner     the block: a lock is not shared by the blocks of one job either
-- p_holding   owners of the blocks around it. Waits that lead back to one of them can never end.
-- Returns true when the lock is held, false when the caller waits.
-- Raises FL012 (stale), FL002 (namespace), FL007 (name), FL022 (the waits go round).
-- Lock order: the running row, then the advisory lock of the tenant's locks (only where somebody has to wait).
-- roles: worker
create or replace function fenceline.take_lock(
  p_job_id bigint,
  p_attempt_id uuid,
  p_namespace text,
  p_name text,
  p_owner uuid,
  p_holding uuid[] default '{}'
) returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_now timestamptz := fenceline.clock();
  v_tenant text := (select j.tenant from fenceline.job j where j.id = p_job_id);
  v_owner uuid;
  v_holder bigint;
begin
  perform fenceline.check_name('lock namespace', p_namespace);
  if p_name is null or length(p_name) not between 1 and 200 then
    raise exception using errcode = 'FL007',
      message = format('lock name %L is not valid: use 1 to 200 characters', left(p_name, 80));
  end if;
  perform fenceline.live_attempt(p_job_id, p_attempt_id);

  -- Free, and nobody in line: one insert.
  if not exists (select 1 from fenceline.lock_wait w
                 where w.tenant = v_tenant and w.namespace = p_namespace and w.name = p_name) then
    insert into fenceline.attempt_lock (tenant, namespace, name, owner, job_id, attempt_id, since)
    values (v_tenant, p_namespace, p_name, p_owner, p_job_id, p_attempt_id, v_now)
    on conflict do nothing;
    if found then
      return true;
    end if;
  end if;

  perform pg_advisory_xact_lock(1179926088, hashtext(v_tenant));
  delete from fenceline.attempt_lock l
  where l.tenant = v_tenant and l.namespace = p_namespace and l.name = p_name and not exists (
    select 1 from fenceline.running r where r.job_id = l.job_id and r.attempt_id = l.attempt_id);
  delete from fenceline.lock_wait w
  where w.tenant = v_tenant and w.namespace = p_namespace and w.name = p_name and not exists (
    select 1 from fenceline.running r where r.job_id = w.job_id and r.attempt_id = w.attempt_id);
  select l.owner, l.job_id into v_owner, v_holder from fenceline.attempt_lock l
  where l.tenant = v_tenant and l.namespace = p_namespace and l.name = p_name;
  if v_owner = p_owner then
    return true;  -- asked again: the reply was lost
  end if;
  if fenceline.leads_back(v_owner, p_holding) then
    raise exception using errcode = 'FL022', detail = fenceline.public_id(v_holder),
      message = case when v_owner = any(p_holding)
        then format('lock %s %L is held by a block around this one: job %s would wait for itself',
                    p_namespace, p_name, fenceline.public_id(p_job_id))
        else format('job %s would wait for ever: lock %s %L is held by job %s, which waits for a lock of this one',
                    fenceline.public_id(p_job_id), p_namespace, p_name, fenceline.public_id(v_holder)) end,
      hint = 'Take locks in the same order everywhere.';
  end if;
  insert into fenceline.lock_wait (owner, seq, tenant, namespace, name, job_id, attempt_id, holding, since)
  values (p_owner, fenceline.next_id(), v_tenant, p_namespace, p_name, p_job_id, p_attempt_id, p_holding, v_now)
  on conflict do nothing;
  if v_owner is not null or p_owner <> (
    select w.owner from fenceline.lock_wait w
    where w.tenant = v_tenant and w.namespace = p_namespace and w.name = p_name order by w.seq limit 1) then
    return false;
  end if;

  -- Free, and the first in line asks. One that saw no line yet may have been quicker: then the place is kept.
  insert into fenceline.attempt_lock (tenant, namespace, name, owner, job_id, attempt_id, since)
  values (v_tenant, p_namespace, p_name, p_owner, p_job_id, p_attempt_id, v_now)
  on conflict do nothing;
  if not found then
    return false;
  end if;
  delete from fenceline.lock_wait w where w.owner = p_owner;
  return true;
end;
$$;
--- file: functions/take_resource_lock.sql
-- Takes a resource lock for a job, until the job ends. Raises FL013 naming the holder.
-- roles: none
create or replace function fenceline.take_resource_lock(p_tenant text, p_name text, p_job_id bigint) returns void
language plpgsql as $$
declare
  v_holder bigint;
begin
  loop
    insert into fenceline.resource_lock (tenant, name, job_id) values (p_tenant, p_name, p_job_id)
    on conflict (tenant, name) do nothing;
    exit when found;
    select r.job_id into v_holder from fenceline.resource_lock r where r.tenant = p_tenant and r.name = p_name;
    if found then
      raise exception using errcode = 'FL013',
        message = format('resource %L is locked by job %s until that job ends', p_name, fenceline.public_id(v_holder)),
        detail = fenceline.public_id(v_holder);
    end if;
  end loop;
end;
$$;
--- file: functions/take_tokens.sql
-- Charges claims to a lane's rate limit. Caller holds the lane's lock and has asked rate_tokens.
-- roles: none
create or replace function fenceline.take_tokens(p_lane fenceline.lane, p_now timestamptz, p_count integer) returns void
language sql as $$
  insert into fenceline.lane_state (lane, tokens, refilled_at)
  values (p_lane.name, fenceline.rate_tokens(p_lane, p_now) - p_count, p_now)
  on conflict (lane) do update set tokens = excluded.tokens, refilled_at = excluded.refilled_at;
$$;
--- file: functions/tell_followers.sql
-- Tells those who watch live that something about these jobs has changed: a notification (`fenceline_changed`, ids joined by
-- commas) for jobs that a server follows, rows in the journal while somebody follows everything.
-- Callers on the hot path ask `exists (select 1 from fenceline.follow)` first: an unwatched job costs that probe of an
-- empty table. A change may be committed before the follower is visible to whoever makes it: servers look again.
--
-- p_token, p_first_line, p_last_line   log lines were written; else the job's state has changed
-- roles: none
create or replace function fenceline.tell_followers(
  p_job_ids bigint[],
  p_token bigint default null,
  p_first_line integer default null,
  p_last_line integer default null
) returns void
language plpgsql set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
declare
  v_now timestamptz := fenceline.clock();
  v_followed bigint[];
begin
  v_followed := array(
    select f.job_id from fenceline.follow f where f.job_id = any(0 || p_job_ids) and f.until > v_now order by f.job_id);
  if v_followed[1] = 0 then
    insert into fenceline.journal (job_id, at, token, first_line, last_line)
    select i, v_now, p_token, p_first_line, p_last_line from unnest(p_job_ids) i;
    v_followed := v_followed[2:];
  end if;
  if cardinality(v_followed) > 0 then
    -- As in tell_watchers: 300 ids fit into a payload.
    perform pg_notify('fenceline_changed', string_agg(c.id::text, ','))
    from unnest(v_followed) with ordinality c(id, n)
    group by (c.n - 1) / 300;
  end if;
end;
$$;
--- file: functions/tell_watchers.sql
-- Notifies clients that wait for the end of these jobs (function watch_jobs); silent when nobody does.
-- roles: none
create or replace function fenceline.tell_watchers(p_job_ids bigint[]) returns void
language plpgsql as $$
declare
  v_watched bigint[];
begin
  v_watched := array(select w.job_id from fenceline.watch w where w.job_id = any(p_job_ids));
  if cardinality(v_watched) > 0 then
    -- A payload holds 8,000 bytes: 300 ids of at most 19 digits and a comma.
    perform pg_notify('fenceline_ended', string_agg(c.id::text, ','))
    from unnest(v_watched) with ordinality c(id, n)
    group by (c.n - 1) / 300;
    delete from fenceline.watch w where w.job_id = any(v_watched);
  end if;
end;
$$;
--- file: functions/timeline.sql
-- The server's timeline: it grows with every promotion of a standby.
-- roles: none
create or replace function fenceline.timeline() returns bigint
language sql stable as $$
  select ('x' || lpad(left(pg_walfile_name(pg_current_wal_lsn()), 8), 16, '0'))::bit(64)::bigint;
$$;
--- file: functions/to_jsonb_checked.sql
-- JSON → jsonb, with an error of ours for what jsonb cannot hold (\u0000, lone surrogates), for broken JSON, and for a number
-- of a few bytes that becomes thousands of digits.
-- roles: none
create or replace function fenceline.to_jsonb_checked(p_what text, p_value json) returns jsonb
language plpgsql immutable as $$
declare
  v_value jsonb;
  v_why text;
begin
  v_value := p_value::jsonb;
  if p_value::text ~ '[eE][-+]?[0-9]{4}'
     and regexp_replace(p_value::text, '"(\\.|[^"\\])*"', '', 'g') ~ '[eE][-+]?[0-9]{4}' then  -- not in a string
    raise exception using errcode = 'numeric_value_out_of_range',
      message = 'a number has an exponent of four digits or more';
  end if;
  return v_value;
exception when data_exception or statement_too_complex then
  get stacked diagnostics v_why = pg_exception_detail;
  raise exception using errcode = 'FL006',
    message = format('%s cannot be stored as JSON: %s', p_what, coalesce(nullif(v_why, ''), sqlerrm)),
    hint = 'Remove \u0000, unpaired surrogates and numbers without end; encode binary data as base64.';
end;
$$;
--- file: functions/token_json.sql
-- A token as people may see it: everything but its hash.
-- roles: none
create or replace function fenceline.token_json(p_token fenceline.token) returns jsonb
language sql stable as $$
  select to_jsonb(p_token) - 'hash';
$$;
--- file: functions/trigger_json.sql
-- A trigger as JSON, without its secret.
-- roles: none
create or replace function fenceline.trigger_json(p_trigger fenceline.trigger) returns jsonb
language sql stable as $$
  select to_jsonb(p_trigger) - 'secret';
$$;
--- file: functions/upkeep.sql
-- What has to happen about once a minute somewhere, for the whole fleet: partitions ahead, retention, forgetting what only
-- had to be remembered for a while, lanes that jobs miss. Any worker or server may call it as often as it likes, the work
-- is done once per interval. In a transaction of its own, apart from `maintain`: it may read through a day's jobs, and drops partitions.
-- Returns how many jobs were forgotten; null when the work was not due.
-- roles: worker
create or replace function fenceline.upkeep(p_interval_seconds double precision default 60) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  if not fenceline.is_due('upkeep', p_interval_seconds) then
    return null;
  end if;
  perform fenceline.prune_requests();
  perform fenceline.prune_ticks();
  perform fenceline.restore_lanes();
  perform fenceline.create_partitions();
  -- Last: from here on enqueues may wait for the end of this transaction.
  return fenceline.prune();
end;
$$;
--- file: functions/use_token.sql
-- Who a token speaks for; no row when it is unknown, expired or revoked. Notes, once a minute, that it was used.
-- roles: producer, worker, reader
create or replace function fenceline.use_token(p_hash bytea)
returns table (id integer, actor text, role text, tenant text, permissions text[], own_jobs boolean, all_tenants boolean)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
  v_now timestamptz := fenceline.clock();
begin
  -- "skip locked": two servers may note it at once, and neither should wait for that.
  update fenceline.token set last_used_at = v_now where id = any(array(
    select t.id from fenceline.token t
    where t.hash = p_hash and (t.last_used_at is null or t.last_used_at < v_now - interval '60 seconds')
    for no key update skip locked));
  return query
  select t.id, t.name, t.role, t.tenant, r.permissions, r.own_jobs and not 'jobs:read_all' = any(r.permissions), r.all_tenants
  from fenceline.token t join fenceline.role r on r.name = t.role
  where t.hash = p_hash and t.revoked_at is null and (t.expires_at is null or t.expires_at > v_now);
end;
$$;
--- file: functions/verify_dependencies.sql
-- Closes the one gap of "enqueue only inserts": a job may end between the moment a waiter's enqueue looked at it and
-- the moment that enqueue became visible, and then nobody took it off the waiter's list.
--
-- A new waiter is looked at until every transaction that could have overlooked its list has ended: the first look
-- notes the newest transaction id there is, and the look after the oldest running one has passed it is the last. From
-- then on whoever ends a dependency sees the list. Returns how many waiters were looked at.
--
-- Two more cases end here: a job that ended in a REPEATABLE READ transaction, whose snapshot may be older than the list
-- (settle then asks for a look at the ended job), and one that ended and was deleted before the list became visible.
-- roles: none
create or replace function fenceline.verify_dependencies(p_limit integer default 1000) returns integer
language plpgsql as $$
declare
  v_waiters bigint[];
  v_ended bigint[];
  v_oldest xid8 := pg_snapshot_xmin(pg_current_snapshot());
  v_newest xid8 := pg_snapshot_xmax(pg_current_snapshot());
begin
  v_waiters := array(
    select c.waiter_id from fenceline.dependency_check c order by c.seen_xid nulls first limit p_limit
    for update skip locked);  -- the unseen first: old ones may have to wait for a long transaction
  if cardinality(v_waiters) = 0 then
    return 0;
  end if;
  select array_agg(distinct d.after_id) into v_ended
  from fenceline.dependency d
  where (d.waiter_id = any(v_waiters) or d.after_id = any(v_waiters))
    and (exists (select 1 from fenceline.history h where h.job_id = d.after_id and h.final)
         or not exists (select 1 from fenceline.job j where j.id = d.after_id));
  if v_ended is not null then
    v_ended := fenceline.advance_waiters(v_ended);
    if v_ended is not null then
      perform fenceline.settle(v_ended, 63);
    end if;
  end if;
  delete from fenceline.dependency_check where waiter_id = any(v_waiters) and seen_xid <= v_oldest;
  update fenceline.dependency_check set seen_xid = v_newest where waiter_id = any(v_waiters) and seen_xid is null;
  return cardinality(v_waiters);
end;
$$;
--- file: functions/wake.sql
-- Notifies workers that wait for these lanes; silent when nobody waits, because NOTIFY takes a database-wide lock at
-- commit. Equal payloads of one transaction are sent once. A wake-up can be missed (the check and the commit are
-- apart): waiting workers poll.
-- roles: none
create or replace function fenceline.wake(p_lanes text[]) returns void
language plpgsql as $$
declare
  v_lane text;
  v_now timestamptz := fenceline.clock();
begin
  for v_lane in
    select distinct w.lane from fenceline.waiter w where w.lane = any(p_lanes) and w.until > v_now
  loop
    perform pg_notify('fenceline_ready', v_lane);
  end loop;
end;
$$;
--- file: functions/watch_jobs.sql
-- Asks for a notification (`fenceline_ended`, ids joined by commas) when these jobs end, for so many seconds.
-- A job may end before the request is visible to whoever ends it: a client asks for outcomes once after this, and again
-- from time to time.
-- roles: producer, worker
create or replace function fenceline.watch_jobs(p_job_ids bigint[], p_seconds double precision default 60)
returns void
language sql security definer set search_path = pg_catalog, pg_temp as $$
  insert into fenceline.watch (job_id, until)
  select distinct i, fenceline.clock() + make_interval(secs => p_seconds) from unnest(p_job_ids) i order by i
  on conflict (job_id) do update set until = greatest(watch.until, excluded.until);
$$;
--- file: functions/write_log.sql
-- Appends lines to the log of a live attempt. Returns false when the attempt is stale; then nothing is written.
--
-- p_lines     JSON array of {"message", "level", "fields", "ago_seconds"}; lines are numbered per attempt. A message, or
--             fields, over the limit (setting max_log_bytes) are cut and marked. Of one attempt so many bytes are kept
--             (setting max_attempt_log_bytes); then a last line says so.
-- p_offset    how many lines of this attempt were sent before these. Lines that are there already are not written again:
--             a reply was lost. Null: all of them are new
-- roles: worker
create or replace function fenceline.write_log(p_job_id bigint, p_attempt_id uuid, p_lines jsonb,
                                               p_offset integer default null) returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_now timestamptz := fenceline.clock();
  v_token bigint;
  v_last integer;
  v_known integer;   -- of these lines, so many are there
  v_most integer;
  v_attempt_most integer;
  v_bytes integer;   -- with these lines
  v_before integer;
begin
  select s.max_log_bytes, s.max_attempt_log_bytes into v_most, v_attempt_most from fenceline.setting s;
  if jsonb_typeof(p_lines) is distinct from 'array' or jsonb_path_exists(p_lines,
       '$[*] ? (@.type() != "object" || (@.ago_seconds.type() != "number" && @.ago_seconds.type() != "null")
                || @.ago_seconds < 0 || @.ago_seconds > 1000000000)') then
    raise exception using errcode = 'FL007',
      message = format('lines %s are not valid: use a JSON array of objects with "message", "level", "fields" and '
                       '"ago_seconds" (0 or more)', left(p_lines::text, 80));
  end if;
  -- The update is fence and lock in one: a reclaim waits for us, or we find nothing.
  update fenceline.running r
  set active_at = v_now, log_bytes = least(coalesce(r.log_bytes, 0)::bigint + octet_length(p_lines::text), 2000000000)
  where r.job_id = p_job_id and r.attempt_id = p_attempt_id returning r.token, r.log_bytes into v_token, v_bytes;
  if not found then
    return false;
  end if;
  v_before := v_bytes - octet_length(p_lines::text);
  if v_before > v_attempt_most then
    return true;  -- its last line is written
  end if;
  select coalesce(max(l.line), 0) into v_last from fenceline.log l where l.job_id = p_job_id and l.token = v_token;
  v_known := coalesce(greatest(v_last - p_offset, 0), 0);
  insert into fenceline.log (job_id, token, line, at, level, message, fields)
  select p_job_id, v_token, v_last - v_known + l.n,
         v_now - make_interval(secs => coalesce((l.v ->> 'ago_seconds')::float8, 0)),
         left(coalesce(l.v ->> 'level', 'info'), 20),
         -- The limit is in bytes; a character has up to four.
         case when octet_length(l.v ->> 'message') > v_most
              then left(l.v ->> 'message', case when octet_length(l.v ->> 'message') = length(l.v ->> 'message')
                                                then v_most else v_most / 4 end) || ' … [cut]' else coalesce(l.v ->> 'message', '') end,
         case when octet_length((l.v -> 'fields')::text) > v_most
              then jsonb_build_object('cut', left((l.v -> 'fields')::text, v_most / 4)) else nullif(l.v -> 'fields', 'null') end
  from (select e.v, e.n, sum(octet_length(e.v::text)) over (order by e.n) as bytes
        from jsonb_array_elements(p_lines) with ordinality e(v, n)) l
  where v_before + l.bytes <= v_attempt_most and l.n > v_known;
  if v_bytes > v_attempt_most then
    insert into fenceline.log (job_id, token, line, at, level, message)
    select p_job_id, v_token, coalesce(max(l.line), 0) + 1, v_now, 'warning',
           format('the log of this attempt is over its limit of %s bytes: further lines are not kept', v_attempt_most)
    from fenceline.log l where l.job_id = p_job_id and l.token = v_token;
  end if;
  if v_known < jsonb_array_length(p_lines) and exists (select 1 from fenceline.follow) then
    perform fenceline.tell_followers(array[p_job_id], v_token, v_last + 1, (
      select max(l.line) from fenceline.log l where l.job_id = p_job_id and l.token = v_token));
  end if;
  return true;
end;
$$;
--- file: functions/wrong_status.sql
-- Raises FL011: a verb that the job's status does not allow.
-- roles: none
create or replace function fenceline.wrong_status(p_job_id bigint, p_verb text, p_allowed text) returns void
language plpgsql as $$
declare
  v_status text := fenceline.job_status(p_job_id);
begin
  raise exception using errcode = 'FL011',
    message = format('job %s cannot be %s: it is %s, and must be %s', fenceline.public_id(p_job_id), p_verb, v_status,
                     p_allowed),
    detail = v_status;
end;
$$;
--- file: reads/attempt_start.sql
-- What a handler starts with that is not in the claim: the checkpoint and the finished steps of earlier attempts, and how
-- the jobs ended that it waited for. Workers ask for it only where there can be any of it.
-- roles: worker
create or replace function fenceline.attempt_start(p_job_id bigint) returns jsonb
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select jsonb_build_object(
    'checkpoint', (select c.state from fenceline.checkpoint c where c.job_id = p_job_id),
    'steps', (select jsonb_object_agg(s.name, jsonb_build_object('args_hash', s.args_hash, 'result', s.result))
              from fenceline.step s where s.job_id = p_job_id and s.status = 'done'),
    'parents', (
      select jsonb_agg(jsonb_build_object(
               'id', fenceline.public_id(a.id), 'kind', j.kind, 'args', j.args, 'labels', j.labels,
               'status', h.outcome, 'result', h.result, 'error', h.error, 'errors', h.errors) order by a.id)
      from fenceline.job w cross join lateral unnest(w.after) a(id)
      left join fenceline.job j on j.id = a.id
      left join fenceline.history h on h.job_id = a.id and h.final
      where w.id = p_job_id));
$$;
--- file: reads/check_attempts.sql
-- What a worker must know of attempts that it is running: `stale` (the attempt is gone: stop, nothing it writes will be
-- accepted) or `cancel` (it was asked to stop, and has so many seconds of grace left). No row: all is well.
-- roles: worker
create or replace function fenceline.check_attempts(p_job_ids bigint[], p_attempt_ids uuid[])
returns table (attempt_id uuid, word text, grace_seconds double precision)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select g.attempt_id, case when r.job_id is null then 'stale' else 'cancel' end,
         greatest(extract(epoch from r.cancel_deadline - fenceline.clock()), 0)::double precision
  from unnest(p_job_ids, p_attempt_ids) g(job_id, attempt_id)
  left join fenceline.running r on r.job_id = g.job_id and r.attempt_id = g.attempt_id
  where r.job_id is null or r.cancel_deadline is not null;
$$;
--- file: reads/depth.sql
-- One number for autoscalers: jobs that a worker could start now (queued, due timers, attempts of dead workers) in a
-- lane, or in all; a lane that is drained counts 0.
-- p_tenant    of this tenant only; null: of all
-- roles: producer, worker, reader
create or replace function fenceline.depth(p_lane text default null, p_tenant text default null) returns bigint
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  with lane as (select n.name from fenceline.lane n where n.enabled and (p_lane is null or n.name = p_lane))
  select (select count(*) from lane n join fenceline.ready r on r.lane = n.name
          where p_tenant is null or r.tenant = p_tenant)
       + (select count(*) from fenceline.timer t
          where t.run_at <= fenceline.clock() and t.lane in (select name from lane)
            and (p_tenant is null or t.tenant = p_tenant))
       + (select count(*) from fenceline.worker w join fenceline.running r on r.worker_id = w.id
          where w.stopped_at is null and w.lease_until < fenceline.clock() and r.lane in (select name from lane)
            and (p_tenant is null
                 or exists (select 1 from fenceline.job j where j.id = r.job_id and j.tenant = p_tenant)));
$$;
--- file: reads/due_schedules.sql
-- Schedules that a scheduler has to look at now, the longest due first.
-- roles: worker
create or replace function fenceline.due_schedules(p_limit integer default 100) returns setof jsonb
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select fenceline.schedule_json(s) from fenceline.schedule s
  where s.due_at <= fenceline.clock() order by s.due_at, s.name limit p_limit;
$$;
--- file: reads/ended_attempt.sql
-- The history of one attempt, if it has ended: no row or one.
-- Two probes, because final rows and the others are in an index of their own each; asked for both at once, the planner
-- scans the whole day.
-- roles: none
create or replace function fenceline.ended_attempt(p_job_id bigint, p_attempt_id uuid) returns setof fenceline.history
language sql stable as $$
  select h.* from fenceline.history h where h.job_id = p_job_id and h.attempt_id = p_attempt_id and h.final
  union all
  select h.* from fenceline.history h where h.job_id = p_job_id and h.attempt_id = p_attempt_id and not h.final;
$$;
--- file: reads/ended_jobs.sql
-- Jobs that ended within the last seconds, found by the range index of history; at most p_most of them are looked at.
-- `seconds` is how long the last attempt took; null for a job that ended unclaimed.
-- roles: none
create or replace function fenceline.ended_jobs(p_seconds double precision, p_most integer)
returns table (job_id bigint, outcome text, ended_at timestamptz, seconds double precision, worker_id integer,
               kind text, lane text, tenant text, created_by text, started_at timestamptz)
language sql stable set enable_seqscan = off as $$
  select h.job_id, h.outcome, h.ended_at,
         extract(epoch from h.ended_at - coalesce(h.started_at, h.claimed_at))::double precision, h.worker_id,
         j.kind, j.lane, j.tenant, j.created_by, coalesce(h.started_at, h.claimed_at)
  from (select * from fenceline.history f
        where f.final and f.ended_at > fenceline.clock() - make_interval(secs => p_seconds) limit p_most) h
  join fenceline.job j on j.id = h.job_id;
$$;
--- file: reads/find_jobs.sql
-- Ids of jobs that match every given filter, newest first, below a cursor: one page of a list.
--
-- p_statuses … p_created_by   null: any; within a list any value matches, labels must all match
-- p_cursor    the last id of the page before; null: from the newest
-- Returns up to p_limit ids, and the cursor of the next page (null: there is none). The scan is bounded: where filters
-- are combined so that matches are far apart, a page may have fewer ids, even none, and still a next cursor.
--
-- How it stays index-backed (docs/adr/0003): a status names the table to walk; else the newest jobs are walked by id,
-- and when those do not fill the page the range index finds the others, in windows of ids that grow as they go back:
-- what is near is found without looking at what is far, and what is rare in a few steps. Where filters
-- are combined no index may serve them, and windows are read through; they stop growing when they become slow, and after
-- some 60 ms the page ends where it is.
-- roles: none
create or replace function fenceline.find_jobs(
  p_statuses text[],
  p_kinds text[],
  p_lanes text[],
  p_tenants text[],
  p_labels jsonb,
  p_created_after timestamptz,
  p_created_before timestamptz,
  p_created_by text,
  p_limit integer,
  p_cursor bigint,
  out job_ids bigint[],
  out next_cursor bigint
)
language plpgsql stable
-- Null filters fold away and constants pick the index: these statements are planned anew each time.
set plan_cache_mode = force_custom_plan
set enable_seqscan = off
as $$
declare
  -- Moments before the first id and after the last one there can be are as good as those.
  v_from bigint := case when p_created_after is null then 0
                        else fenceline.id_at(least(greatest(p_created_after, '2024-01-01Z'), '2093-01-01Z')) end;
  v_below bigint := least(coalesce(p_cursor, 9223372036854775807),
                          case when p_created_before is null then 9223372036854775807
                               else fenceline.id_at(least(greatest(p_created_before, '2024-01-01Z'), '2093-01-01Z')) end);
  v_filtered boolean := num_nonnulls(p_kinds, p_lanes, p_tenants, p_labels, p_created_by) > 0;
  v_combined boolean := num_nonnulls(p_kinds, p_lanes, p_tenants, p_labels, p_created_by) > 1;
  v_budget integer := case when v_filtered then greatest(5000, p_limit) else p_limit end;
  v_walked bigint[];
  v_low bigint;
  v_high bigint;
  v_span bigint;
  v_started timestamptz := clock_timestamp();
  v_window_started timestamptz;
  v_is_slow boolean := false;
begin
  if p_statuses is not null then
    v_walked := fenceline.newest_by_status(p_statuses, v_from, v_below, v_budget);
    job_ids := v_walked;
    if v_filtered then
      job_ids := array(
        select j.id from fenceline.job j
        where j.id = any(v_walked)
          and (p_kinds is null or j.kind = any(p_kinds)) and (p_lanes is null or j.lane = any(p_lanes))
          and (p_tenants is null or j.tenant = any(p_tenants)) and (p_labels is null or j.labels @> p_labels)
          and (p_created_by is null or j.created_by = p_created_by)
        order by j.id desc limit p_limit);
    end if;
    if cardinality(job_ids) = p_limit then
      next_cursor := job_ids[p_limit];
    elsif cardinality(v_walked) = v_budget then
      next_cursor := v_walked[v_budget];
    end if;
    return;
  end if;

  -- The walk ends with the page, or with the budget.
  job_ids := array(
    select j.id
    from (select w.id, w.kind, w.lane, w.tenant, w.labels, w.created_by from fenceline.job w
          where w.id < v_below and w.id >= v_from order by w.id desc limit v_budget) j
    where (p_kinds is null or j.kind = any(p_kinds)) and (p_lanes is null or j.lane = any(p_lanes))
      and (p_tenants is null or j.tenant = any(p_tenants)) and (p_labels is null or j.labels @> p_labels)
      and (p_created_by is null or j.created_by = p_created_by)
    limit p_limit);
  if v_filtered and cardinality(job_ids) < p_limit then
    select min(w.id), max(w.id) - min(w.id) into v_high, v_span
    from (select j.id from fenceline.job j where j.id < v_below and j.id >= v_from order by j.id desc limit v_budget) w;
    v_span := greatest(v_span, 60000::bigint << 22);
    v_from := coalesce((select j.id from fenceline.job j where j.id >= v_from order by j.id limit 1), v_high);
    while cardinality(job_ids) < p_limit and v_high > v_from loop
      v_window_started := clock_timestamp();
      if v_combined and v_window_started - v_started > interval '60 milliseconds' then
        next_cursor := v_high;
        return;
      end if;
      if not v_is_slow then
        v_span := least(v_span, 1::bigint << 60) * 4;
      end if;
      v_low := greatest(v_high - v_span, v_from);
      -- "id + 0": not by the primary key, which would walk over everything that does not match.
      job_ids := job_ids || array(
        select j.id from fenceline.job j
        where j.id < v_high and j.id >= v_low
          and (p_kinds is null or j.kind = any(p_kinds)) and (p_lanes is null or j.lane = any(p_lanes))
          and (p_tenants is null or j.tenant = any(p_tenants)) and (p_labels is null or j.labels @> p_labels)
          and (p_created_by is null or j.created_by = p_created_by)
        order by j.id + 0 desc limit p_limit - cardinality(job_ids));
      v_high := v_low;
      v_is_slow := v_combined and clock_timestamp() - v_window_started > interval '8 milliseconds';
    end loop;
  end if;
  if cardinality(job_ids) = p_limit then
    next_cursor := job_ids[p_limit];
  end if;
end;
$$;
--- file: reads/find_triggers.sql
-- What it takes to check a request to a trigger: every trigger of that name, whoever's; the secret that fits decides whose
-- is meant. `now` is the database's time, in seconds since 1970.
-- roles: admin
create or replace function fenceline.find_triggers(p_name text)
returns table (tenant text, kind text, secret text, window_seconds integer, idempotency_header text, dedupe_header text,
               now double precision)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select t.tenant, t.kind, t.secret, t.window_seconds, t.idempotency_header, t.dedupe_header,
         extract(epoch from fenceline.clock())::double precision
  from fenceline.trigger t where t.name = p_name and t.enabled
  order by t.tenant limit 1000;
$$;
--- file: reads/fleet_health.sql
-- The fleet in one look, as JSON: the database's time, whether the system drains, live workers' versions, workers whose
-- lease is over and who were not swept, timers and schedules that are overdue, lanes that are drained with jobs in them,
-- and how long ago maintenance and upkeep were done.
-- roles: reader
create or replace function fenceline.fleet_health() returns jsonb
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select jsonb_build_object(
    'clock', extract(epoch from fenceline.clock()),
    'draining', (select s.draining from fenceline.setting s),
    'versions', (select coalesce(jsonb_object_agg(v.version, v.workers), '{}') from (
       select coalesce(w.version, 'unknown') as version, count(*) as workers from fenceline.worker w
       where w.stopped_at is null and w.lease_until >= fenceline.clock() and not w.runner group by 1) v),
    'unswept', (select coalesce(jsonb_agg(jsonb_build_object('worker', w.name, 'attempts',
         (select count(*) from fenceline.running r where r.worker_id = w.id),
         'seconds', extract(epoch from fenceline.clock() - w.lease_until)) order by w.id), '[]')
       from fenceline.worker w where w.stopped_at is null and w.lease_until < fenceline.clock()),
    'overdue_timers', (select jsonb_build_object('jobs', count(*), 'seconds',
         extract(epoch from fenceline.clock() - min(t.run_at))) from fenceline.timer t where t.run_at <= fenceline.clock()),
    'overdue_schedules', (select jsonb_build_object('schedules', count(*), 'seconds',
         extract(epoch from fenceline.clock() - min(s.due_at))) from fenceline.schedule s where s.due_at <= fenceline.clock()),
    'drained', (select coalesce(jsonb_object_agg(n.name, d.jobs), '{}') from fenceline.lane n
       cross join lateral (select count(*) as jobs from fenceline.ready r where r.lane = n.name) d
       where not n.enabled and d.jobs > 0),
    'ran', (select coalesce(jsonb_object_agg(m.task, extract(epoch from fenceline.clock() - m.ran_at)), '{}')
       from fenceline.maintenance m));
$$;
--- file: reads/fleet_status.sql
-- The fleet at this moment, as JSON: whether it drains, every lane with what is measured and the jobs that use its slots
-- (the 100 oldest), workers and runners with their last heartbeat.
--
-- p_tenant    only this tenant's jobs count and are shown; null: all. Lanes and workers belong to everybody, a runner that
--             is bound to a tenant to that one.
-- A worker whose lease is over, or that was not heard of for p_offline_seconds, is `offline`; one that signed off is not
-- shown, and one that has been offline for a day neither.
-- roles: reader
create or replace function fenceline.fleet_status(p_tenant text default null, p_offline_seconds double precision default 60)
returns jsonb
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  with slot as (
    select r.lane, r.worker_id, r.claimed_at,
           row_number() over (partition by r.lane order by r.claimed_at, r.job_id) as place,
           jsonb_build_object(
             'id', fenceline.public_id(r.job_id), 'kind', j.kind, 'tenant', j.tenant, 'priority', r.priority,
             'status', case when r.started_at is null then 'claimed' else 'running' end, 'attempt', r.number,
             'claimed_at', r.claimed_at, 'started_at', r.started_at, 'active_at', r.active_at,
             'cancel_requested_at', r.cancel_requested_at, 'phase', p.phase, 'worker', w.name) as job
    from fenceline.running r
    join fenceline.job j on j.id = r.job_id and (p_tenant is null or j.tenant = p_tenant)
    left join fenceline.progress p on p.job_id = r.job_id and p.attempt_id = r.attempt_id
    left join fenceline.worker w on w.id = r.worker_id
  ), member as (
    select w.runner, w.name, w.id, jsonb_build_object(
      'id', w.id, 'name', w.name, 'host', w.host, 'pid', w.pid, 'version', w.version, 'lanes', w.lanes,
      'labels', w.labels, 'started_at', w.started_at, 'heartbeat_at', w.heartbeat_at,
      'status', case when w.lease_until < fenceline.clock()
                       or w.heartbeat_at < fenceline.clock() - make_interval(secs => p_offline_seconds) then 'offline'
                     else 'online' end,
      'in_use', (select count(*) from slot s where s.worker_id = w.id)) as json
    from fenceline.worker w
    -- Who signed off, did so before the lease was over; who was swept, after.
    where (w.stopped_at is null or w.stopped_at >= w.lease_until)
      and w.heartbeat_at > fenceline.clock() - interval '1 day'
      and (p_tenant is null or w.tenant is null or w.tenant = p_tenant)
  )
  select jsonb_build_object(
    'draining', (select s.draining from fenceline.setting s),
    'lanes', (
      select coalesce(jsonb_agg(to_jsonb(n) - 'default_priority' || jsonb_build_object('jobs', coalesce(
               (select jsonb_agg(s.job order by s.place) from slot s where s.lane = n.name and s.place <= 100), '[]'))
               order by n.name), '[]')
      from fenceline.lanes(null, p_tenant) n),
    'workers', (select coalesce(jsonb_agg(m.json order by m.name, m.id), '[]') from member m where not m.runner),
    'runners', (select coalesce(jsonb_agg(m.json order by m.name, m.id), '[]') from member m where m.runner));
$$;
--- file: reads/followed_jobs.sql
-- What a live view of jobs shows, for many at once: the job as in the view `jobs`, log lines after a token and line (at
-- most p_limit), and versions that tell whether the state or the progress is another than before. `job` is null for a job
-- that is gone. All of one snapshot: with a final status come the last lines.
-- `stamp` is that of followed_stamps.
-- roles: admin
create or replace function fenceline.followed_jobs(
  p_job_ids bigint[],
  p_tokens bigint[],
  p_lines integer[],
  p_limit integer default 500
) returns table (job_id bigint, stamp bigint, job jsonb, status text, progress jsonb, status_version bigint,
                 progress_version bigint, lines jsonb[])
language sql stable security definer set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
  select g.id, s.stamp, v.job, v.job ->> 'status', p.progress,
         coalesce(hashtextextended((v.job - array['phase', 'progress'])::text, 0), 0),
         -- 0: nothing was reported yet
         case when p.progress - 'id' - 'attempt' = '{"phase": null, "progress": null}' then 0
              else coalesce(hashtextextended(p.progress::text, 0), 0) end,
         array(select to_jsonb(l) from fenceline.read_log(g.id, g.token, g.line, p_limit) l)
  from unnest(p_job_ids, p_tokens, p_lines) g(id, token, line)
  left join lateral (select fenceline.get_job(g.id) as job) v on true
  left join lateral (select jsonb_build_object(
    'id', v.job -> 'id', 'attempt', v.job -> 'attempt', 'phase', v.job -> 'phase',
    'progress', v.job -> 'progress') as progress) p on v.job is not null
  left join fenceline.followed_stamps(p_job_ids) s on s.job_id = g.id;
$$;
--- file: reads/followed_stamps.sql
-- A number per job that is another one whenever anything a live view shows has changed: the cheap half of polling.
-- roles: admin
create or replace function fenceline.followed_stamps(p_job_ids bigint[]) returns table (job_id bigint, stamp bigint)
language sql stable security definer set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
  select i, hashtextextended(concat_ws('|',
    (select 'r' || concat_ws(' ', r.token, r.started_at, r.cancel_requested_at) from fenceline.running r
     where r.job_id = i),
    (select 'q' || concat_ws(' ', r.priority, r.own_priority, r.lane, r.token) from fenceline.ready r where r.job_id = i),
    (select 't' || concat_ws(' ', t.run_at, t.priority, t.lane, t.token) from fenceline.timer t where t.job_id = i),
    (select 'h' || concat_ws(' ', h.waiting_for, h.priority, h.lane, h.token) from fenceline.held h where h.job_id = i),
    (select 'e' || h.ended_at from fenceline.history h where h.job_id = i and h.final),
    (select 'p' || p.updated_at from fenceline.progress p where p.job_id = i),
    (select 'l' || concat_ws(' ', l.token, l.line) from fenceline.log l where l.job_id = i
     order by l.token desc, l.line desc limit 1),
    (select 'j' from fenceline.job j where j.id = i)), 0)
  from unnest(p_job_ids) i;
$$;
--- file: reads/get_job.sql
-- One job as JSON, as the view `jobs` shows it; null when it is not there, or belongs to another tenant than p_tenant.
-- roles: producer, worker, reader
create or replace function fenceline.get_job(p_job_id bigint, p_tenant text default null) returns jsonb
language plpgsql stable security definer set search_path = pg_catalog, pg_temp
-- The view has an arm per table, and tables have partitions: planning it costs several times what running it does. One
-- plan for all jobs, by the primary keys.
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
begin
  return (
    select to_jsonb(v) - 'job_id' from fenceline.jobs v
    where v.job_id = p_job_id and (p_tenant is null or v.tenant = p_tenant));
end;
$$;
--- file: reads/has_webhooks.sql
-- Whether a delivery waits for somebody to make it.
-- roles: worker
create or replace function fenceline.has_webhooks() returns boolean
language sql stable security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off as $$
  select exists (select 1 from fenceline.ready r where r.lane = 'webhooks' and r.kind = 'fenceline.webhook');
$$;
--- file: reads/hooks.sql
-- Outgoing webhooks of a tenant (null: of all), without their secrets.
-- roles: reader
create or replace function fenceline.hooks(p_tenant text default null) returns setof jsonb
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select to_jsonb(h) - 'secret' from fenceline.hook h where p_tenant is null or h.tenant = p_tenant order by h.id;
$$;
--- file: reads/is_live.sql
-- Whether a job is somewhere on its way: queued, scheduled, waiting or held by a worker.
-- roles: none
create or replace function fenceline.is_live(p_job_id bigint) returns boolean
language sql stable as $$
  select exists (select 1 from fenceline.ready r where r.job_id = p_job_id)
      or exists (select 1 from fenceline.running r where r.job_id = p_job_id)
      or exists (select 1 from fenceline.timer t where t.job_id = p_job_id)
      or exists (select 1 from fenceline.held h where h.job_id = p_job_id);
$$;
--- file: reads/is_settled.sql
-- Whether every transaction that was open before the given one (follow_jobs) is over.
-- roles: admin
create or replace function fenceline.is_settled(p_transaction text) returns boolean
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select pg_snapshot_xmin(pg_current_snapshot()) > p_transaction::xid8;
$$;
--- file: reads/job_events.sql
-- What happened to a job, first to last: made, claimed, started, ended, and everything that people did to it.
-- `actor` is a person or a worker; `details` is what is known besides.
-- roles: producer, worker, reader
create or replace function fenceline.job_events(p_job_id bigint)
returns table (at timestamptz, event text, actor text, reason text, details jsonb)
language sql stable security definer set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
  with attempt as (
    select a.*, jsonb_build_object('attempt', a.number, 'attempt_id', a.attempt_id) as named
    from fenceline.list_attempts(p_job_id) a
  )
  select e.at, e.event, e.actor, e.reason, jsonb_strip_nulls(e.details)
  from (
    select fenceline.id_time(j.id) as at, 1 as place, 'job.enqueue' as event, j.created_by as actor, null::text as reason,
           jsonb_build_object('kind', j.kind, 'lane', j.lane, 'retry_of', fenceline.public_id(j.retry_of)) as details
    from fenceline.job j where j.id = p_job_id
    union all
    select a.claimed_at, 3, 'attempt.claim', a.worker, null, a.named from attempt a where a.attempt_id is not null
    union all
    -- A live attempt has no start yet, or one of its own; list_attempts fills in the claim's time for the others.
    select a.started_at, 4, 'attempt.start', a.worker, null, a.named from attempt a
    where a.attempt_id is not null
      and (a.ended_at is not null
           or exists (select 1 from fenceline.running r where r.job_id = p_job_id and r.started_at is not null))
    union all
    select a.ended_at, 5, case when a.attempt_id is null then 'job.end' else 'attempt.end' end, coalesce(a.actor, a.worker),
           a.error ->> 'message',
           coalesce(case when a.attempt_id is not null then a.named end, '{}') || jsonb_build_object(
             'outcome', a.outcome, 'final', a.final, 'error', a.error, 'metadata', a.metadata)
    from attempt a where a.ended_at is not null
    union all
    select v.at, 2, v.action, v.actor, v.reason, jsonb_build_object('before', v.before, 'after', v.after)
    from fenceline.event v where v.subject = fenceline.public_id(p_job_id)
  ) e
  order by e.at, e.place;
$$;
--- file: reads/journal_lines.sql
-- The log lines that rows of the journal speak of, in order; `n` is the row's place in the lists.
-- roles: admin
create or replace function fenceline.journal_lines(p_job_ids bigint[], p_tokens bigint[], p_first integer[], p_last integer[])
returns table (n bigint, line jsonb)
language sql stable security definer set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
  select g.n, to_jsonb(l) - 'job_id'
  from unnest(p_job_ids, p_tokens, p_first, p_last) with ordinality g(job_id, token, first_line, last_line, n)
  join fenceline.log l on l.job_id = g.job_id and l.token = g.token and l.line between g.first_line and g.last_line
  order by g.n, l.line;
$$;
--- file: reads/journal_place.sql
-- The place in the journal from which a reader goes on that had read up to p_after (null: a new one, from the newest).
-- Null when something after it is not there any more.
-- roles: admin
create or replace function fenceline.journal_place(p_after bigint default null) returns bigint
language sql stable security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off as $$
  select case when p_after is null then s.last_value
              when p_after = s.last_value or exists (select 1 from fenceline.journal j where j.position = p_after + 1)
              then p_after end
  from fenceline.journal_position s;
$$;
--- file: reads/lane_rates.sql
-- Jobs that ended per second in each lane over the last p_seconds; a lane where none did has no row. Of one tenant, or
-- (null) of all.
--
-- Looks at 20,000 ends at most, so that a screen that asks every second costs a busy queue little; where there were more,
-- the rates are of those, scaled to the time they cover.
-- roles: producer, worker, reader
create or replace function fenceline.lane_rates(p_seconds double precision default 10, p_tenant text default null) returns table (
  lane text, per_second double precision
)
language sql stable security definer set search_path = pg_catalog, pg_temp
-- As in list_jobs: a plan that does not depend on statistics.
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
  with ended as materialized (
    select h.job_id, h.ended_at from fenceline.history h
    -- A subselect, not the volatile clock itself: only then can the range index on ended_at be used.
    where h.final and h.ended_at > (select fenceline.clock() - make_interval(secs => p_seconds))
    limit 20000
  ), covered as (
    select case when count(*) < 20000 then p_seconds
                else greatest(extract(epoch from max(e.ended_at) - min(e.ended_at)), 0.001) end as seconds
    from ended e
  )
  select j.lane, count(*) / (select c.seconds from covered c)::double precision
  -- Row by row: only so does every server skip the partitions that cannot have the job.
  from ended e join fenceline.job j on j.id = e.job_id
  where p_tenant is null or j.tenant = p_tenant
  group by j.lane;
$$;
--- file: reads/lanes.sql
-- Every lane with its settings and what is measured: slots in use, depth, age of the oldest queued job.
-- p_tenant    measure only what this tenant has there; null: everything
-- roles: producer, worker, reader
create or replace function fenceline.lanes(p_name text default null, p_tenant text default null) returns table (
  name text, kinds text[], slots integer, in_use bigint, depth bigint, oldest_age_seconds double precision,
  poll_interval_ms integer, stale_timeout_seconds integer, on_stale text, enabled boolean, rate_per_second double precision,
  burst integer, fair boolean, ageing_seconds integer, default_priority smallint
)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select n.name, array(select k.name from fenceline.kind k where k.lane = n.name order by 1), n.slots,
         (select count(*) from fenceline.running r
          where r.lane = n.name
            and (p_tenant is null
                 or exists (select 1 from fenceline.job j where j.id = r.job_id and j.tenant = p_tenant))),
         (select count(*) from fenceline.ready r where r.lane = n.name and (p_tenant is null or r.tenant = p_tenant)),
         -- The oldest by id: seq is a rank in a lane with ageing.
         extract(epoch from fenceline.clock() - fenceline.id_time(
           (select min(greatest(r.seq, r.job_id)) from fenceline.ready r
            where r.lane = n.name and (p_tenant is null or r.tenant = p_tenant))))::double precision,
         n.poll_interval_ms, n.stale_timeout_seconds, n.on_stale, n.enabled, n.rate_per_second, n.burst, n.fair,
         n.ageing_seconds, n.default_priority
  from fenceline.lane n
  where p_name is null or n.name = p_name
  order by n.name;
$$;
--- file: reads/list_attempts.sql
-- Every attempt of a job, the live one included, first to last; a row without attempt is a job that ended unclaimed.
-- roles: producer, worker, reader
create or replace function fenceline.list_attempts(p_job_id bigint) returns table (
  attempt_id uuid, token bigint, number smallint, worker text, claimed_at timestamptz, started_at timestamptz,
  ended_at timestamptz, outcome text, final boolean, error jsonb, actor text, metadata jsonb
)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select a.attempt_id, a.token, a.number, w.name, a.claimed_at, coalesce(a.started_at, a.claimed_at), a.ended_at, a.outcome,
         a.final, a.error, a.actor, a.metadata
  from (
    -- Final rows and the others are in an index of their own each.
    select h.attempt_id, h.token, h.number, h.worker_id, h.claimed_at, h.started_at, h.ended_at, h.outcome, h.final,
           h.error, h.actor, h.metadata
    from fenceline.history h where h.job_id = p_job_id and h.final
    union all
    select h.attempt_id, h.token, h.number, h.worker_id, h.claimed_at, h.started_at, h.ended_at, h.outcome, h.final,
           h.error, h.actor, h.metadata
    from fenceline.history h where h.job_id = p_job_id and not h.final
    union all
    select r.attempt_id, r.token, r.number, r.worker_id, r.claimed_at, r.started_at, null, null, false, null, null, null
    from fenceline.running r where r.job_id = p_job_id
  ) a
  left join fenceline.worker w on w.id = a.worker_id
  order by a.token nulls last, a.ended_at;
$$;
--- file: reads/list_events.sql
-- The audit of operator actions, newest first; of one subject (a public job id, a lane, "system") or of all; by tenant,
-- actor and action.
-- roles: reader
create or replace function fenceline.list_events(
  p_subject text default null,
  p_limit integer default 100,
  p_cursor bigint default null,
  p_tenant text default null,
  p_actor text default null,
  p_action text default null
) returns table (id bigint, at timestamptz, actor text, action text, subject text, tenant text, reason text, before jsonb,
                 after jsonb)
language sql stable security definer set search_path = pg_catalog, pg_temp
-- Null filters fold away and constants pick the index.
set plan_cache_mode = force_custom_plan
as $$
  select e.id, e.at, e.actor, e.action, e.subject, e.tenant, e.reason, e.before, e.after
  from fenceline.event e
  where (p_subject is null or e.subject = p_subject) and (p_cursor is null or e.id < p_cursor)
    and (p_tenant is null or e.tenant = p_tenant) and (p_actor is null or e.actor = p_actor)
    and (p_action is null or e.action = p_action)
  order by e.id desc limit p_limit;
$$;
--- file: reads/list_jobs.sql
-- One page of a list of jobs, newest first: `jobs`, a JSON array of rows of the view `jobs`, and `next_cursor`, null on
-- the last page.
-- Filters and bounds as in find_jobs. An unknown status is FL007, a limit outside 1 to 1000 too.
-- roles: producer, worker, reader
create or replace function fenceline.list_jobs(
  p_statuses text[] default null,
  p_kinds text[] default null,
  p_lanes text[] default null,
  p_tenants text[] default null,
  p_labels jsonb default null,
  p_created_after timestamptz default null,
  p_created_before timestamptz default null,
  p_created_by text default null,
  p_limit integer default 50,
  p_cursor bigint default null,
  out jobs jsonb,
  out next_cursor bigint
)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp
-- The last step reads the page's jobs by id; a young partition looks small enough to be scanned, and grows.
set enable_seqscan = off
as $$
declare
  v_ids bigint[];
begin
  perform fenceline.check_statuses(p_statuses);
  if p_limit is null or p_limit not between 1 and 1000 then
    raise exception using errcode = 'FL007', message = format('limit %s is out of range: use 1 to 1000', p_limit);
  end if;
  select f.job_ids, f.next_cursor into v_ids, next_cursor
  from fenceline.find_jobs(p_statuses, p_kinds, p_lanes, p_tenants, p_labels, p_created_after, p_created_before,
                           p_created_by, p_limit, p_cursor) f;
  select coalesce(jsonb_agg(to_jsonb(v) - 'job_id' order by v.job_id desc), '[]') into jobs
  from fenceline.jobs v where v.job_id = any(v_ids);
end;
$$;
--- file: reads/list_locks.sql
-- Locks of live attempts and who waits for them, in order: which jobs hold what, and what a job waits for.
-- roles: worker, reader
create or replace function fenceline.list_locks(p_tenant text default null)
returns table (tenant text, namespace text, name text, job text, job_id bigint, held boolean, since timestamptz)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select l.tenant, l.namespace, l.name, fenceline.public_id(l.job_id), l.job_id, l.held, l.since
  from (
    select a.tenant, a.namespace, a.name, a.job_id, a.attempt_id, true as held, a.since, 0::bigint as seq
    from fenceline.attempt_lock a
    union all
    select w.tenant, w.namespace, w.name, w.job_id, w.attempt_id, false, w.since, w.seq from fenceline.lock_wait w
  ) l
  where (p_tenant is null or l.tenant = p_tenant)
    and exists (select 1 from fenceline.running r where r.job_id = l.job_id and r.attempt_id = l.attempt_id)
  order by l.tenant, l.namespace, l.name, l.held desc, l.seq;
$$;
--- file: reads/list_roles.sql
-- Every role with its permissions, or the one of that name.
-- roles: admin
create or replace function fenceline.list_roles(p_name text default null) returns setof jsonb
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select to_jsonb(r) from fenceline.role r where p_name is null or r.name = p_name order by r.name;
$$;
--- file: reads/list_steps.sql
-- The steps of a job in order: what was done, what failed, what is listed and still to come.
-- roles: producer, worker, reader
create or replace function fenceline.list_steps(p_job_id bigint, p_tenant text default null)
returns table (name text, status text, result jsonb, error jsonb, token bigint, ran_seconds double precision,
               ended_at timestamptz)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform fenceline.find_job(p_job_id, p_tenant);
  return query
  select s.name, s.status, s.result, s.error, s.token, s.ran_seconds, s.ended_at
  from fenceline.step s where s.job_id = p_job_id order by s.position, s.ended_at, s.name;
end;
$$;
--- file: reads/list_ticks.sql
-- What became of a schedule's ticks, newest first.
-- roles: producer, worker, reader
create or replace function fenceline.list_ticks(p_name text, p_limit integer default 50) returns table (
  tick_at timestamptz, outcome text, decided_at timestamptz, from_at timestamptz, job text, error text
)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select t.tick_at, t.outcome, t.decided_at, t.from_at, fenceline.public_id(t.job_id), t.error
  from fenceline.schedule_tick t where t.schedule = p_name order by t.tick_at desc limit p_limit;
$$;
--- file: reads/list_tokens.sql
-- Tokens of a tenant (null: of all), newest first, without their hashes; p_cursor: the last id of the page before.
-- roles: admin
create or replace function fenceline.list_tokens(
  p_tenant text default null,
  p_limit integer default 100,
  p_cursor integer default null,
  p_valid boolean default null
) returns setof jsonb
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select fenceline.token_json(t) from fenceline.token t
  where (p_tenant is null or t.tenant = p_tenant) and (p_cursor is null or t.id < p_cursor)
    and (p_valid is null
         or p_valid = (t.revoked_at is null and (t.expires_at is null or t.expires_at > fenceline.clock())))
  order by t.id desc limit p_limit;
$$;
--- file: reads/list_workers.sql
-- The workers that are signed on, oldest first, with what each is running and how many seconds of its lease are left
-- (negative: nobody has taken its jobs over yet). With p_stopped also those that stopped or were lost, newest 100.
-- roles: producer, worker, reader
create or replace function fenceline.list_workers(p_stopped boolean default false) returns table (
  id integer, name text, host text, pid integer, version text, runner boolean, lanes text[], kinds text[], labels jsonb,
  running bigint, started_at timestamptz, heartbeat_at timestamptz, lease_seconds double precision,
  lease_seconds_left double precision, stopped_at timestamptz
)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  with held as (select r.worker_id, count(*) as running from fenceline.running r group by r.worker_id)
  select w.id, w.name, w.host, w.pid, w.version, w.runner, w.lanes, w.kinds, w.labels, coalesce(h.running, 0), w.started_at,
         w.heartbeat_at, w.lease_seconds, extract(epoch from w.lease_until - fenceline.clock())::double precision,
         w.stopped_at
  from (
    select a.* from fenceline.worker a where a.stopped_at is null
    union all
    (select b.* from fenceline.worker b where p_stopped and b.stopped_at is not null order by b.id desc limit 100)
  ) w
  left join held h on h.worker_id = w.id
  order by w.stopped_at is not null, w.id;
$$;
--- file: reads/live_claim.sql
-- A live attempt as claim_jobs returned it, for whoever runs a part of its job elsewhere (a finalizer on the server). No
-- row: the attempt is gone.
-- roles: worker
create or replace function fenceline.live_claim(p_job_id bigint, p_attempt_id uuid) returns table (
  lane text, job_id bigint, attempt_id uuid, token bigint, number smallint, kind text, args json, tenant text,
  priority smallint, seq bigint, max_attempts smallint, timeout_seconds double precision, alone boolean, more jsonb
)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select r.lane, r.job_id, r.attempt_id, r.token, r.number, j.kind, j.args, j.tenant, r.priority,
         coalesce(r.seq, r.job_id), j.max_attempts, j.timeout_seconds, r.deaths is not null,
         nullif(fenceline.claim_details(r.job_id), '{}')
  from fenceline.running r join fenceline.job j on j.id = r.job_id
  where r.job_id = p_job_id and r.attempt_id = p_attempt_id;
$$;
--- file: reads/lost_locks.sql
-- Resource locks, keys and dedupe keys of jobs that are over or gone: nobody will give them back.
-- roles: reader
create or replace function fenceline.lost_locks() returns table (what text, tenant text, name text, job text)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select 'resource_lock', l.tenant, l.name, fenceline.public_id(l.job_id)
  from fenceline.resource_lock l where not fenceline.is_live(l.job_id)
  union all
  select 'key', k.tenant, k.key, fenceline.public_id(k.job_id)
  from fenceline.key_holder k where not fenceline.is_live(k.job_id)
  union all
  select 'dedupe_key', d.tenant, d.key, fenceline.public_id(d.job_id)
  from fenceline.dedupe d where not fenceline.is_live(d.job_id);
$$;
--- file: reads/newest_by_status.sql
-- The newest ids between two bounds of jobs in the given statuses, at most p_limit: each status is one ordered walk.
-- roles: none
create or replace function fenceline.newest_by_status(
  p_statuses text[],
  p_from bigint,
  p_below bigint,
  p_limit integer
) returns bigint[]
language plpgsql stable set plan_cache_mode = force_custom_plan as $$
declare
  v_ids bigint[];
  v_status text;
  v_more bigint[];
  v_low bigint;
  v_high bigint;
  v_span bigint;
begin
  v_ids := array(
    (select r.job_id from fenceline.ready r
     where 'queued' = any(p_statuses) and r.job_id < p_below and r.job_id >= p_from order by r.job_id desc limit p_limit)
    union all
    (select r.job_id from fenceline.running r
     where r.job_id < p_below and r.job_id >= p_from
       and (case when r.started_at is null then 'claimed' else 'running' end) = any(p_statuses)
     order by r.job_id desc limit p_limit)
    union all
    (select t.job_id from fenceline.timer t
     where 'scheduled' = any(p_statuses) and t.job_id < p_below and t.job_id >= p_from order by t.job_id desc limit p_limit)
    union all
    (select h.job_id from fenceline.held h
     where 'awaiting_approval' = any(p_statuses) and h.waiting_for = 'approval' and h.job_id < p_below
       and h.job_id >= p_from order by h.job_id desc limit p_limit)
    union all
    (select h.job_id from fenceline.held h
     where 'waiting' = any(p_statuses) and h.waiting_for = 'dependencies' and h.job_id < p_below
       and h.job_id >= p_from order by h.job_id desc limit p_limit)
    union all
    (select h.job_id from fenceline.held h
     where 'waiting' = any(p_statuses) and h.waiting_for = 'key' and h.job_id < p_below
       and h.job_id >= p_from order by h.job_id desc limit p_limit));
  foreach v_status in array p_statuses loop
    if v_status in ('succeeded_with_errors', 'failed', 'cancelled') then
      v_ids := v_ids || array(
        select h.job_id from fenceline.history h
        where h.final and h.outcome <> 'succeeded' and h.outcome = v_status and h.job_id < p_below
          and h.job_id >= p_from order by h.job_id desc limit p_limit);
    elsif v_status = 'succeeded' then
      -- Nearly all are: walk by id. Where that was not so, the range index finds them, in windows that grow as in
      -- find_jobs.
      v_more := array(
        select w.job_id from (
          select h.job_id, h.outcome from fenceline.history h
          where h.final and h.job_id < p_below and h.job_id >= p_from
          order by h.job_id desc limit p_limit + 5000) w
        where w.outcome = 'succeeded' limit p_limit);
      if cardinality(v_more) < p_limit then
        select min(w.job_id), max(w.job_id) - min(w.job_id) into v_high, v_span
        from (select h.job_id from fenceline.history h where h.final and h.job_id < p_below and h.job_id >= p_from
              order by h.job_id desc limit p_limit + 5000) w;
        v_span := greatest(v_span, 60000::bigint << 22);
        while cardinality(v_more) < p_limit and v_high > p_from loop
          v_span := least(v_span, 1::bigint << 60) * 4;
          v_low := greatest(v_high - v_span, p_from);
          v_more := v_more || array(
            select h.job_id from fenceline.history h
            where h.final and h.outcome = 'succeeded' and h.job_id < v_high and h.job_id >= v_low
            order by h.job_id + 0 desc limit p_limit - cardinality(v_more));
          v_high := v_low;
        end loop;
      end if;
      v_ids := v_ids || v_more;
    end if;
  end loop;
  return array(select i from unnest(v_ids) i order by i desc limit p_limit);
end;
$$;
--- file: reads/outcomes.sql
-- How jobs ended: a row for each of the given ones that has. One statement serves any number of waiting clients.
-- A job that does not exist (any more) has a row with status null.
-- roles: producer, worker, reader
create or replace function fenceline.outcomes(p_job_ids bigint[])
returns table (job_id bigint, status text, result jsonb, error jsonb, errors jsonb)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select i, h.outcome, h.result, h.error, h.errors
  from unnest(p_job_ids) i
  left join fenceline.history h on h.job_id = i and h.final
  where h.job_id is not null or not exists (select 1 from fenceline.job j where j.id = i);
$$;
--- file: reads/own_runner.sql
-- The id itself, if it is a runner of p_owner's that has not signed off and was not taken for dead.
-- Raises FL065 for a runner that is missing or somebody else's, alike; FL015 when its lease is over.
-- roles: worker
create or replace function fenceline.own_runner(p_runner_id integer, p_owner text) returns integer
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_stopped_at timestamptz;
begin
  select w.stopped_at into v_stopped_at from fenceline.worker w
  where w.id = p_runner_id and w.runner and w.owner = p_owner;
  if not found then
    raise exception using errcode = 'FL065', message = format('runner %s does not exist: register one', p_runner_id);
  end if;
  if v_stopped_at is not null then
    raise exception using errcode = 'FL015',
      message = format('runner %s has signed off, or its lease is over: register again', p_runner_id);
  end if;
  return p_runner_id;
end;
$$;
--- file: reads/partition_problems.sql
-- What is wrong with the daily partitions of `job` and `history`:
--   missing    no partition for today or tomorrow: new jobs go to the default one, where retention deletes row by row
--   unpaired   one of the two tables has a partition for the day, the other has not
--   detached   a table that looks like a partition and is none: its jobs are not seen
--   overdue    older by 4 days than the longest retention, and still there
-- roles: reader
create or replace function fenceline.partition_problems() returns table (problem text, name text)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  with tables as (
    select c.relname::text as name, split_part(c.relname, '_', 1) as parent, to_date(right(c.relname, 8), 'YYYYMMDD') as day,
           exists (select 1 from pg_inherits i where i.inhrelid = c.oid) as attached
    from pg_class c
    where c.relnamespace = 'fenceline'::regnamespace and c.relkind = 'r' and c.relname ~ '^(job|history)_\d{8}$'
  ), now as (
    select (fenceline.clock() at time zone 'UTC')::date as today
  )
  select 'missing', 'job_' || to_char(n.today + i, 'YYYYMMDD')
  from now n cross join generate_series(0, 1) i
  where not exists (select 1 from tables t where t.attached and t.parent = 'job' and t.day = n.today + i)
  union all
  select 'unpaired', t.name from tables t
  where t.attached and not exists (select 1 from tables o where o.attached and o.day = t.day and o.parent <> t.parent)
  union all
  select 'detached', t.name from tables t where not t.attached
  union all
  select 'overdue', t.name from tables t cross join now n
  where t.attached and t.parent = 'job'
    and t.day < n.today - 4 - (select ceil(max(r.seconds) / 86400)::integer from fenceline.retention() r);
$$;
--- file: reads/read_log.sql
-- Log lines of a job in order, after a given token and line; the token tells the attempt.
-- roles: producer, worker, reader
create or replace function fenceline.read_log(
  p_job_id bigint,
  p_after_token bigint default 0,
  p_after_line integer default 0,
  p_limit integer default 1000
) returns table (token bigint, line integer, at timestamptz, level text, message text, fields jsonb)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select l.token, l.line, l.at, l.level, l.message, l.fields from fenceline.log l
  where l.job_id = p_job_id and (l.token, l.line) > (p_after_token, p_after_line)
  order by l.token, l.line limit p_limit;
$$;
--- file: reads/retention.sql
-- How long finished jobs are kept: a row per kind that has a word of its own and per status, and one row without kind,
-- the default of all others. `said_by`: operator, decorator or default.
-- roles: reader
create or replace function fenceline.retention() returns table (
  kind text, status text, seconds double precision, said_by text
)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select null, null, s.retention_seconds::double precision, 'default' from fenceline.setting s
  union all
  (select k.name, o.status, extract(epoch from fenceline.retention_of(k.name, o.status))::double precision,
          case when k.operator_retention ? o.status then 'operator' when k.retention ? o.status then 'decorator'
               else 'default' end
   from fenceline.kind k
   cross join unnest(array['succeeded', 'succeeded_with_errors', 'failed', 'cancelled']) with ordinality o (status, place)
   where k.operator_retention is not null or k.retention is not null
   order by k.name, o.place);
$$;
--- file: reads/runner_attempt.sql
-- Whether somebody may write for an attempt: the door of every attempt call over HTTP. It does not fence, the operation
-- behind it does: an attempt never changes its runner, but it may end at any moment.
--
-- p_tenant    whose jobs the one who asks may touch; null: everybody's
-- Returns `live` or `ended`. Raises FL010 (the job is missing or foreign), FL012 (it never had such an attempt), FL066 (the
-- attempt is of a worker, or of somebody else's runner).
-- roles: worker
create or replace function fenceline.runner_attempt(p_job_id bigint, p_attempt_id uuid, p_owner text, p_tenant text)
returns text
language plpgsql stable security definer set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
declare
  v_worker integer;
  v_state text := 'live';
begin
  perform 1 from fenceline.job j where j.id = p_job_id and (p_tenant is null or j.tenant = p_tenant);
  if not found then
    raise exception using errcode = 'FL010',
      message = format('job %s does not exist', coalesce(fenceline.public_id(p_job_id), 'null'));
  end if;
  select r.worker_id into v_worker from fenceline.running r where r.job_id = p_job_id and r.attempt_id = p_attempt_id;
  if not found then
    v_state := 'ended';
    select h.worker_id into v_worker from fenceline.ended_attempt(p_job_id, p_attempt_id) h;
    if not found then
      raise exception using errcode = 'FL012',
        message = format('attempt %s of job %s is gone: nothing was changed', p_attempt_id, fenceline.public_id(p_job_id)),
        hint = 'It was reclaimed, cancelled or finished; whoever holds the job now decides.';
    end if;
  end if;
  perform 1 from fenceline.worker w where w.id = v_worker and w.runner and w.owner = p_owner;
  if not found then
    raise exception using errcode = 'FL066',
      message = format('attempt %s of job %s belongs to a runner of another token', p_attempt_id, fenceline.public_id(p_job_id));
  end if;
  return v_state;
end;
$$;
--- file: reads/runner_lanes.sql
-- The lanes in which a runner may find something to claim now, in the order given, or by name.
-- p_lanes     null: those it registered with, or all
-- p_request_id   of the claim; in each lane it is made under an id of its own (`request_id`)
-- Returns, per lane: `plain` (there are jobs), `suspects` (there are jobs to be run alone), `idle` (and the runner holds
-- nothing, so it could run one of those), `answered` (the same claim got jobs of it before; a drained lane too).
-- Raises as own_runner.
-- roles: worker
create or replace function fenceline.runner_lanes(p_runner_id integer, p_owner text, p_lanes text[] default null,
                                                  p_request_id uuid default null)
returns table (name text, request_id uuid, plain boolean, suspects boolean, idle boolean, answered boolean)
language sql stable security definer set search_path = pg_catalog, pg_temp
-- As in claim_jobs: a plan that does not depend on statistics.
set enable_seqscan = off
as $$
  select s.name, s.request_id, s.plain, s.suspects,
         s.suspects and not exists (select 1 from fenceline.running r where r.worker_id = p_runner_id), s.answered
  from (
    select n.name, i.request_id, array_position(coalesce(p_lanes, w.lanes), n.name) as place,
           n.enabled and exists (
             select 1 from fenceline.ready r
             where r.lane = n.name and r.deaths is null and (w.tenant is null or r.tenant = w.tenant)) as plain,
           n.enabled and exists (
             select 1 from fenceline.ready r
             where r.lane = n.name and r.deaths is not null and (w.tenant is null or r.tenant = w.tenant)) as suspects,
           exists (select 1 from fenceline.claim_request q
                   where q.request_id = i.request_id and q.worker_id = p_runner_id) as answered
    from fenceline.worker w
    join fenceline.lane n on coalesce(p_lanes, w.lanes) is null or n.name = any(coalesce(p_lanes, w.lanes))
    cross join lateral (
      select encode(substr(sha256(convert_to(p_request_id || ' ' || n.name, 'UTF8')), 1, 16), 'hex')::uuid) i(request_id)
    where w.id = fenceline.own_runner(p_runner_id, p_owner)
  ) s
  where s.plain or s.suspects or s.answered
  order by s.place, s.name;
$$;
--- file: reads/schedules.sql
-- Every schedule, or one, by name.
-- roles: producer, worker, reader
create or replace function fenceline.schedules(p_name text default null) returns setof jsonb
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select fenceline.schedule_json(s) from fenceline.schedule s
  where p_name is null or s.name = p_name order by s.name;
$$;
--- file: reads/stats_active.sql
-- Jobs that workers hold, those held longest first, with phase and progress; and how many there are per kind and phase.
--
-- p_labels    must all match; p_phase: only those in this phase
-- p_created_by  only what this actor enqueued; null: all
-- roles: reader
create or replace function fenceline.stats_active(
  p_tenant text default null,
  p_created_by text default null,
  p_kinds text[] default null,
  p_lanes text[] default null,
  p_labels jsonb default null,
  p_phase text default null,
  p_limit integer default 100
) returns jsonb
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  with active as (
    select r.job_id, j.kind, r.lane, j.tenant, j.labels, r.number as attempt, w.name as worker, p.phase, p.progress,
           case when r.started_at is null then 'claimed' else 'running' end as status, r.claimed_at, r.started_at,
           r.active_at, r.cancel_requested_at,
           extract(epoch from fenceline.clock() - r.claimed_at)::double precision as seconds
    from fenceline.running r
    join fenceline.job j on j.id = r.job_id
    left join fenceline.worker w on w.id = r.worker_id
    left join fenceline.progress p on p.job_id = r.job_id and p.attempt_id = r.attempt_id
    where (p_tenant is null or j.tenant = p_tenant) and (p_created_by is null or j.created_by = p_created_by)
      and (p_kinds is null or j.kind = any(p_kinds)) and (p_lanes is null or r.lane = any(p_lanes))
      and (p_labels is null or j.labels @> p_labels) and (p_phase is null or p.phase = p_phase)
  )
  select jsonb_build_object(
    'items', coalesce((
      select jsonb_agg(to_jsonb(a) - 'job_id' || jsonb_build_object('id', fenceline.public_id(a.job_id))
                       order by a.claimed_at, a.job_id)
      from (select * from active order by claimed_at, job_id limit p_limit) a), '[]'),
    'phases', coalesce((
      select jsonb_agg(jsonb_build_object('kind', g.kind, 'phase', g.phase, 'count', g.count) order by g.count desc, g.kind)
      from (select a.kind, a.phase, count(*) from active a group by a.kind, a.phase) g), '[]'));
$$;
--- file: reads/stats_backlog.sql
-- What waits, by kind and lane: counts per status, and the age of the oldest. Looks at most at p_most rows of each table;
-- `is_complete` says whether that were all.
-- roles: reader
create or replace function fenceline.stats_backlog(p_tenant text default null, p_most integer default 500000) returns jsonb
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  with looked as (
    (select r.kind, r.lane, r.tenant, r.job_id, 'queued' as status from fenceline.ready r limit p_most)
    union all
    (select t.kind, t.lane, t.tenant, t.job_id, 'scheduled' from fenceline.timer t limit p_most)
    union all
    (select h.kind, h.lane, h.tenant, h.job_id,
            case h.waiting_for when 'approval' then 'awaiting_approval' else 'waiting' end
     from fenceline.held h limit p_most)
  ), counted as (
    select l.kind, l.lane, count(*) filter (where l.status = 'queued') as queued,
           count(*) filter (where l.status = 'scheduled') as scheduled,
           count(*) filter (where l.status = 'waiting') as waiting,
           count(*) filter (where l.status = 'awaiting_approval') as awaiting_approval,
           extract(epoch from fenceline.clock() - fenceline.id_time(min(l.job_id)))::double precision
             as oldest_age_seconds
    from looked l where p_tenant is null or l.tenant = p_tenant
    group by l.kind, l.lane
  )
  select jsonb_build_object(
    'items', coalesce((select jsonb_agg(to_jsonb(c) order by c.queued + c.scheduled + c.waiting desc, c.kind, c.lane)
                       from counted c), '[]'),
    'is_complete', (select coalesce(max(n.rows), 0) < p_most
                    from (select count(*) as rows from looked l group by l.status = 'queued', l.status = 'scheduled') n));
$$;
--- file: reads/stats_errors.sql
-- Of the jobs that ended within the last p_seconds, by kind: how many, how, and which share failed or had errors.
-- roles: reader
create or replace function fenceline.stats_errors(
  p_tenant text default null,
  p_created_by text default null,
  p_seconds double precision default 3600,
  p_most integer default 200000
) returns jsonb
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  with ended as (select * from fenceline.ended_jobs(p_seconds, p_most)), counted as (
    select e.kind, count(*) as ended, count(*) filter (where e.outcome = 'succeeded') as succeeded,
           count(*) filter (where e.outcome = 'succeeded_with_errors') as succeeded_with_errors,
           count(*) filter (where e.outcome = 'failed') as failed,
           count(*) filter (where e.outcome = 'cancelled') as cancelled,
           round((count(*) filter (where e.outcome in ('failed', 'succeeded_with_errors')))::numeric / count(*), 6)
             as error_rate
    from ended e
    where (p_tenant is null or e.tenant = p_tenant) and (p_created_by is null or e.created_by = p_created_by)
    group by e.kind
  )
  select jsonb_build_object(
    'items', coalesce((select jsonb_agg(to_jsonb(c) order by c.error_rate desc, c.ended desc, c.kind) from counted c), '[]'),
    'is_complete', (select count(*) < p_most from ended));
$$;
--- file: reads/stats_slow.sql
-- The jobs that take or took longest, of those that run now and those that ended within the last p_seconds.
-- roles: reader
create or replace function fenceline.stats_slow(
  p_tenant text default null,
  p_created_by text default null,
  p_seconds double precision default 3600,
  p_kinds text[] default null,
  p_limit integer default 20,
  p_most integer default 200000
) returns jsonb
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  with ended as (select * from fenceline.ended_jobs(p_seconds, p_most)), ran as (
    select e.job_id, e.kind, e.lane, e.tenant, e.created_by, e.outcome as status, e.started_at, e.ended_at as finished_at,
           e.worker_id, e.seconds
    from ended e where e.seconds is not null
    union all
    select r.job_id, j.kind, r.lane, j.tenant, j.created_by, case when r.started_at is null then 'claimed' else 'running' end,
           coalesce(r.started_at, r.claimed_at), null, r.worker_id,
           extract(epoch from fenceline.clock() - coalesce(r.started_at, r.claimed_at))::double precision
    from fenceline.running r join fenceline.job j on j.id = r.job_id
  ), slowest as (
    select n.* from ran n
    where (p_tenant is null or n.tenant = p_tenant) and (p_created_by is null or n.created_by = p_created_by)
      and (p_kinds is null or n.kind = any(p_kinds))
    order by n.seconds desc, n.job_id limit p_limit
  )
  select jsonb_build_object(
    'items', coalesce((
      select jsonb_agg(jsonb_build_object(
               'id', fenceline.public_id(s.job_id), 'kind', s.kind, 'lane', s.lane, 'tenant', s.tenant, 'status', s.status,
               'started_at', s.started_at, 'finished_at', s.finished_at, 'worker', w.name, 'seconds', s.seconds)
             order by s.seconds desc, s.job_id)
      from slowest s left join fenceline.worker w on w.id = s.worker_id), '[]'),
    'is_complete', (select count(*) < p_most from ended));
$$;
--- file: reads/stats_throughput.sql
-- Jobs that ended within the last p_seconds, per tenant and span of p_bucket_seconds, oldest span first.
-- roles: reader
create or replace function fenceline.stats_throughput(
  p_tenant text default null,
  p_created_by text default null,
  p_seconds double precision default 3600,
  p_bucket_seconds double precision default 60,
  p_most integer default 200000
) returns jsonb
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  with ended as (select * from fenceline.ended_jobs(p_seconds, p_most)), counted as (
    select e.tenant,
           to_timestamp(floor(extract(epoch from e.ended_at) / p_bucket_seconds) * p_bucket_seconds) as at,
           count(*) as ended, count(*) filter (where e.outcome = 'succeeded') as succeeded,
           count(*) filter (where e.outcome = 'succeeded_with_errors') as succeeded_with_errors,
           count(*) filter (where e.outcome = 'failed') as failed,
           count(*) filter (where e.outcome = 'cancelled') as cancelled
    from ended e
    where (p_tenant is null or e.tenant = p_tenant) and (p_created_by is null or e.created_by = p_created_by)
    group by 1, 2
  )
  select jsonb_build_object(
    'items', coalesce((select jsonb_agg(to_jsonb(c) order by c.at, c.tenant) from counted c), '[]'),
    'is_complete', (select count(*) < p_most from ended));
$$;
--- file: reads/stuck_jobs.sql
-- Jobs that nobody can run, and why:
--   no_slots     queued in a lane that has 0 slots
--   no_lane      in a lane that does not exist
--   dependency   waits for jobs of which none is on its way any more
--   nowhere      neither on its way nor ended: a row is missing (looks at the newest 100,000 jobs)
-- roles: reader
create or replace function fenceline.stuck_jobs() returns table (reason text, subject text, jobs bigint, example text)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select 'no_slots', n.name, count(*), fenceline.public_id(min(r.job_id))
  from fenceline.lane n join fenceline.ready r on r.lane = n.name
  where n.slots = 0 and n.enabled group by n.name
  union all
  select 'no_lane', l.lane, count(*), fenceline.public_id(min(l.job_id))
  from (select lane, job_id from fenceline.ready union all select lane, job_id from fenceline.timer
        union all select lane, job_id from fenceline.held) l
  where not exists (select 1 from fenceline.lane n where n.name = l.lane) group by l.lane
  union all
  select 'dependency', '', count(*), fenceline.public_id(min(h.job_id))
  from fenceline.held h
  where h.waiting_for = 'dependencies'
    and not exists (select 1 from fenceline.dependency_check c where c.waiter_id = h.job_id)
    and not exists (select 1 from fenceline.dependency d where d.waiter_id = h.job_id and fenceline.is_live(d.after_id))
  having count(*) > 0
  union all
  select 'nowhere', '', count(*), fenceline.public_id(min(j.id))
  from (select id from fenceline.job order by id desc limit 100000) j
  where not exists (select 1 from fenceline.history h where h.job_id = j.id and h.final) and not fenceline.is_live(j.id)
  having count(*) > 0;
$$;
--- file: reads/tenant_limits.sql
-- How many unfinished jobs tenants may have, and how many the last count found: a row per tenant that has a limit of its
-- own, and one without tenant, the default of all others (null: none).
-- roles: reader
create or replace function fenceline.tenant_limits() returns table (tenant text, max_jobs integer, jobs bigint)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select null, s.max_tenant_jobs, null from fenceline.setting s
  union all
  (select l.tenant, l.max_jobs, coalesce(c.jobs, 0)
   from fenceline.tenant_limit l left join fenceline.tenant_count c on c.tenant = l.tenant
   order by l.tenant);
$$;
--- file: reads/trigger_args.sql
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
--- file: reads/triggers.sql
-- Incoming webhooks of a tenant (null: of all) by name, without their secrets.
-- roles: reader
create or replace function fenceline.triggers(p_tenant text default null, p_name text default null) returns setof jsonb
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select fenceline.trigger_json(t) from fenceline.trigger t
  where (p_tenant is null or t.tenant = p_tenant) and (p_name is null or t.name = p_name)
  order by t.name, t.tenant;
$$;
--- file: reads/unknown_kinds.sql
-- Kinds of queued jobs that none of the live workers of their lane knows, though there are some; of jobs that have been
-- claimable for p_seconds. Looks at the first 10,000 jobs of every lane.
-- roles: reader
create or replace function fenceline.unknown_kinds(p_seconds double precision) returns table (
  lane text, kind text, jobs bigint, example text
)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  with live as (
    select w.lanes, w.kinds from fenceline.worker w where w.stopped_at is null and w.lease_until >= fenceline.clock()
  ), queued as (
    select n.name as lane, r.kind, count(*) as jobs, min(r.job_id) as first
    from fenceline.lane n
    cross join lateral (select r.kind, r.job_id from fenceline.ready r where r.lane = n.name
                        order by r.lane, r.priority desc, r.seq limit 10000) r
    where n.enabled and fenceline.id_time(r.job_id) <= fenceline.clock() - make_interval(secs => p_seconds)
    group by 1, 2
  )
  select q.lane, q.kind, q.jobs, fenceline.public_id(q.first)
  from queued q
  where exists (select 1 from live l where l.lanes is null or q.lane = any(l.lanes))
    and not exists (select 1 from live l where (l.lanes is null or q.lane = any(l.lanes))
                                           and (l.kinds is null or q.kind = any(l.kinds)));
$$;
--- file: reads/unserved_lanes.sql
-- Lanes with jobs that could start, and no live worker that serves them, for p_seconds already.
-- roles: reader
create or replace function fenceline.unserved_lanes(p_seconds double precision) returns table (
  lane text, depth bigint, oldest_age_seconds double precision
)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select n.name, fenceline.depth(n.name), n.oldest_age_seconds
  from fenceline.lanes() n
  where n.enabled and n.oldest_age_seconds >= p_seconds
    and not exists (select 1 from fenceline.worker w where w.stopped_at is null and w.lease_until >= fenceline.clock()
                    and (w.lanes is null or n.name = any(w.lanes)));
$$;
--- file: reads/visible_job_id.sql
-- The id itself, if there is such a job for somebody bound to a tenant (null: to none) who may see only what p_created_by
-- enqueued (null: all). Raises FL010 for a job that is missing, foreign, or past its retention: all alike.
-- roles: producer, worker, reader
create or replace function fenceline.visible_job_id(p_job_id bigint, p_tenant text, p_created_by text) returns bigint
language plpgsql stable security definer set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
begin
  perform 1 from fenceline.job j
  where j.id = p_job_id and (p_tenant is null or j.tenant = p_tenant)
    and (p_created_by is null or j.created_by = p_created_by)
    and not exists (
      select 1 from fenceline.history h
      where h.job_id = p_job_id and h.final
        and h.ended_at < fenceline.clock() - fenceline.retention_of(j.kind, h.outcome));
  if not found then
    raise exception using errcode = 'FL010',
      message = format('job %s does not exist', coalesce(fenceline.public_id(p_job_id), 'null'));
  end if;
  return p_job_id;
end;
$$;
--- file: reads/webhook_delivery.sql
-- What a delivery of kind `fenceline.webhook` needs: address, secret, and the ended job as the view `jobs` shows it, as text. No
-- row when the hook is gone; `body` is null when the job is.
-- roles: worker
create or replace function fenceline.webhook_delivery(p_hook_id integer, p_job_id bigint, p_tenant text)
returns table (url text, secret text, body text)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select h.url, h.secret, fenceline.get_job(p_job_id, p_tenant)::text
  from fenceline.hook h where h.id = p_hook_id and h.tenant = p_tenant;
$$;
--- file: reads/worker_lanes.sql
-- What a worker must know of its lanes, read once per poll: settings, and whether it is worth its while to claim. An idle
-- worker polls with this one statement, whatever the number of its lanes.
-- p_lanes     the lanes it serves; null: all
-- Returns, per lane: `limited` (by slots, rate or fairness), `suspects` (jobs wait to be run alone), `ready` (any job
-- waits, also of kinds that this worker does not know), `wanted` (another worker waits for jobs of the lane),
-- `expected` (the worker was told to serve it, or it lists one of the worker's kinds).
-- roles: worker
create or replace function fenceline.worker_lanes(p_lanes text[] default null, p_worker_id integer default null)
returns table (
  name text, slots integer, poll_interval_ms integer, enabled boolean, limited boolean, suspects boolean, ready boolean,
  wanted boolean, expected boolean
)
language sql stable security definer set search_path = pg_catalog, pg_temp
-- As in claim_jobs: a plan that does not depend on statistics.
set enable_seqscan = off
as $$
  select n.name, n.slots, n.poll_interval_ms, n.enabled,
         n.slots is not null or n.rate_per_second is not null or n.fair,
         exists (select 1 from fenceline.ready r where r.lane = n.name and r.deaths is not null),
         exists (select 1 from fenceline.ready r where r.lane = n.name),
         exists (select 1 from fenceline.waiter w
                 where w.lane = n.name and w.worker_id <> p_worker_id and w.until > fenceline.clock()),
         p_lanes is not null or exists (
           select 1 from fenceline.kind k
           where k.lane = n.name and k.name = any((select w.kinds from fenceline.worker w where w.id = p_worker_id)::text[]))
  from fenceline.lane n
  where p_lanes is null or n.name = any(p_lanes)
  order by n.name;
$$;
--- file: views/jobs.sql
-- Every job with its status: the public face of the state machine.
--
-- One arm per table that a job can be in. A filter on status reaches the arms, and the planner drops those that cannot
-- match. `id` is the public id; `job_id` the internal one, and the indexed one.
-- roles: reader
create or replace view fenceline.jobs as
select fenceline.public_id(r.job_id) as id, r.kind, 'queued'::text as status, null::text as waiting_for, r.lane,
       coalesce(r.own_priority, r.priority) as priority, r.tenant, j.args::jsonb as args, j.labels, coalesce(r.number, 0::smallint) as attempt,
       j.max_attempts, fenceline.id_time(r.job_id) as created_at, j.created_by, j.run_at,
       null::timestamptz as claimed_at, null::timestamptz as started_at, null::timestamptz as finished_at,
       null::text as worker, null::text as phase, null::jsonb as progress, null::jsonb as result, null::jsonb as error,
       null::jsonb as errors, null::timestamptz as cancel_requested_at, fenceline.public_id(j.retry_of) as retry_of,
       fenceline.public_id(j.parent) as parent, coalesce(j.delivery, 'postgres') as delivery, j.backend_job_id,
       r.job_id
from fenceline.ready r left join fenceline.job j on j.id = r.job_id
union all
select fenceline.public_id(r.job_id), j.kind, case when r.started_at is null then 'claimed' else 'running' end,
       (select 'lock ' || k.namespace || '/' || k.name from fenceline.lock_wait k
        where k.job_id = r.job_id and k.attempt_id = r.attempt_id order by k.seq limit 1), r.lane,
       r.priority, j.tenant, j.args::jsonb, j.labels, r.number, j.max_attempts, fenceline.id_time(r.job_id), j.created_by, j.run_at,
       r.claimed_at, r.started_at, null, w.name, p.phase, p.progress, null, null, null, r.cancel_requested_at,
       fenceline.public_id(j.retry_of), fenceline.public_id(j.parent), coalesce(j.delivery, 'postgres'), j.backend_job_id,
       r.job_id
from fenceline.running r
left join fenceline.job j on j.id = r.job_id
left join fenceline.worker w on w.id = r.worker_id
left join fenceline.progress p on p.job_id = r.job_id and p.attempt_id = r.attempt_id
union all
select fenceline.public_id(t.job_id), t.kind, 'scheduled', null, t.lane, t.priority, t.tenant, j.args::jsonb, j.labels,
       coalesce(t.number, 0::smallint), j.max_attempts, fenceline.id_time(t.job_id), j.created_by, t.run_at, null, null, null, null,
       null, null, null, null, null, null, fenceline.public_id(j.retry_of), fenceline.public_id(j.parent),
       coalesce(j.delivery, 'postgres'), j.backend_job_id, t.job_id
from fenceline.timer t left join fenceline.job j on j.id = t.job_id
union all
select fenceline.public_id(h.job_id), h.kind, case h.waiting_for when 'approval' then 'awaiting_approval' else 'waiting' end,
       nullif(h.waiting_for, 'approval'), h.lane, h.priority, h.tenant, j.args::jsonb, j.labels, coalesce(h.number, 0::smallint),
       j.max_attempts, fenceline.id_time(h.job_id), j.created_by, coalesce(h.run_at, j.run_at), null, null, null, null, null, null,
       null, null, null, null, fenceline.public_id(j.retry_of), fenceline.public_id(j.parent), coalesce(j.delivery, 'postgres'),
       j.backend_job_id, h.job_id
from fenceline.held h left join fenceline.job j on j.id = h.job_id
union all
select fenceline.public_id(h.job_id), j.kind, h.outcome, null, j.lane, j.priority, j.tenant, j.args::jsonb, j.labels,
       coalesce(h.number, 0::smallint), j.max_attempts, fenceline.id_time(h.job_id), j.created_by, j.run_at, h.claimed_at,
       coalesce(h.started_at, h.claimed_at), h.ended_at, w.name, p.phase, p.progress, h.result, h.error, h.errors, null,
       fenceline.public_id(j.retry_of), fenceline.public_id(j.parent), coalesce(j.delivery, 'postgres'), j.backend_job_id,
       h.job_id
from fenceline.history h
left join fenceline.job j on j.id = h.job_id
left join fenceline.worker w on w.id = h.worker_id
left join fenceline.progress p on p.job_id = h.job_id
where h.final;
--- file: views/lane_depth.sql
-- The lanes for autoscalers that read SQL. `depth`: how many jobs a worker could start now, 0 for a lane that is drained;
-- `running`: how many workers hold. A fleet that must not be shrunk under running jobs scales by depth + running.
-- `select depth from fenceline.lane_depth where lane = 'default'` counts in that lane only.
-- roles: reader
create or replace view fenceline.lane_depth as
select n.name as lane, fenceline.depth(n.name) as depth,
       (select count(*) from fenceline.running r where r.lane = n.name) as running, n.slots, n.enabled
from fenceline.lane n;
--- file: setup.sql
-- Run by the migrator when the functions are in place. From the first day on, so that the default partitions stay empty:
-- attaching a partition reads through the default one while it holds a lock.
select fenceline.create_partitions();

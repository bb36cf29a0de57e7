-- Writes jobs that have their keys: resource locks, deadlines, jobs, dependencies, then the place that the first unmet gate
-- says: approval, dependencies, and the rest by place_jobs.
--
-- p_after     what all of them wait for
-- p_numbered  true: the ids were given out before, so that they do not say when the jobs became claimable
-- Raises FL008 (dependency missing), FL013 (resource locked), FL020 (empty group).
-- roles: none
create or replace function fenceline.write_gated_jobs(p_jobs fenceline.job[], p_after jsonb, p_numbered boolean) returns void
language plpgsql as $$
declare
  v_ids bigint[] := array(select j.id from unnest(p_jobs) j);
  v_first fenceline.job := p_jobs[1];
  v_after bigint[];
  v_pending bigint[];
  v_failed bigint;
  v_unapproved fenceline.live[];
  v_passed fenceline.live[];
begin
  perform fenceline.take_resource_lock(j.tenant, j.resource_lock, j.id) from unnest(p_jobs) j
  where j.resource_lock is not null;
  insert into fenceline.deadline (job_id, expires_at)
  select j.id, j.expires_at from unnest(p_jobs) j where j.expires_at is not null;

  if v_first.after_policy is not null then
    v_after := fenceline.read_after(v_first.tenant, p_after);
  end if;
  insert into fenceline.job (id, priority, max_attempts, kind, lane, tenant, args, labels, created_by, run_at,
                             expires_at, timeout_seconds, dedupe_key, idempotency_key, resource_lock, key, key_limit,
                             needs_approval, snapshot, snapshot_hash, requires_hash, identity, after, after_policy,
                             group_name, retry, retry_of, parent, delivery, traceparent, backend_job_id,
                             dedupe_until, runner)
  select j.id, j.priority, j.max_attempts, j.kind, j.lane, j.tenant, j.args, j.labels, j.created_by, j.run_at,
         j.expires_at, j.timeout_seconds, j.dedupe_key, j.idempotency_key, j.resource_lock, j.key, j.key_limit,
         j.needs_approval, j.snapshot, j.snapshot_hash, j.requires_hash, j.identity, v_after, j.after_policy,
         j.group_name, j.retry, j.retry_of, j.parent, j.delivery, j.traceparent, j.backend_job_id, j.dedupe_until, j.runner
  from unnest(p_jobs) j;
  if v_first.parent is not null then
    perform fenceline.note_children(v_first.parent, v_ids);
  end if;

  if v_after is not null then
    select array_agg(a.id order by a.id) filter (where h.outcome is null),
           min(a.id) filter (where h.outcome not in ('succeeded', 'succeeded_with_errors'))
      into v_pending, v_failed
    from unnest(v_after) a(id)
    left join fenceline.history h on h.job_id = a.id and h.final;
    if v_pending is not null then
      insert into fenceline.dependency (after_id, waiter_id)
      select p, i from unnest(v_ids) i cross join unnest(v_pending) p;
      insert into fenceline.dependency_check (waiter_id) select i from unnest(v_ids) i;
    end if;
  end if;

  select array_agg(l.live) filter (where l.needs_approval), array_agg(l.live) filter (where l.needs_approval is not true)
    into v_unapproved, v_passed
  from (
    select j.needs_approval,
           row(j.id, case when p_numbered then fenceline.next_id() else j.id end, j.priority, j.lane, j.kind, j.tenant,
               null, null, null,
               nullif(case when j.dedupe_key is not null then 1 /* dedupe */ else 0 end
                      | case when j.resource_lock is not null then 2 /* resource lock */ else 0 end
                      | case when j.key is not null then 4 /* key wanted */ else 0 end
                      | case when j.expires_at is not null then 16 /* expires */ else 0 end
                      | case when j.requires_hash is not null then 32 /* compares hash */ else 0 end
                      | case when j.runner is not null then 256 /* addressed */ else 0 end, 0),
               j.run_at)::fenceline.live as live
    from unnest(p_jobs) j) l;
  if v_failed is not null and v_first.after_policy = 'success' then
    -- Through `held`, so that one function ends them.
    perform fenceline.hold_jobs(v_unapproved || v_passed, 'dependencies', coalesce(cardinality(v_pending), 0));
    perform fenceline.end_waiting(v_ids, 'cancelled', fenceline.dependency_error(v_failed), null);
    return;
  end if;
  if v_unapproved is not null then
    perform fenceline.hold_jobs(v_unapproved, 'approval', coalesce(cardinality(v_pending), 0));
  end if;
  if v_passed is null then
    return;
  elsif v_pending is not null then
    perform fenceline.hold_jobs(v_passed, 'dependencies', cardinality(v_pending));
  else
    perform fenceline.place_jobs(v_passed);  -- all at once: a key is asked for once, a lane woken once
  end if;
end;
$$;

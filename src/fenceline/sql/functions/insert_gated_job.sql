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

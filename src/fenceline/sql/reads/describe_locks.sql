-- What jobs hold that others may wait for, and who waits, as JSON: locks of live attempts (`ctx.lock`) and of code outside
-- handlers (`app.lock`), resource locks, keys.
--
--   what        lock · resource_lock · key
--   tenant, namespace (of a lock), name
--   job, actor  who: a job, or the actor of code outside handlers
--   held        whether it has it or waits for it; since when, where that is known
--   holder, holder_actor   of what is waited for: who has it, if the reader may know of it
--
-- p_job_id    of this job only; null: of all, the first p_limit of each
-- p_tenant, p_created_by   who asks, as in explain_job; of p_created_by's own jobs only
-- Raises FL010 (p_job_id is missing, or not to be seen).
-- roles: producer, worker, reader
create or replace function fenceline.describe_locks(
  p_job_id bigint default null,
  p_tenant text default null,
  p_created_by text default null,
  p_limit integer default 1000
) returns setof jsonb
language plpgsql stable security definer set search_path = pg_catalog, pg_temp
-- One job, or all: each its own plan.
set plan_cache_mode = force_custom_plan set enable_seqscan = off set jit = off
as $$
begin
  if p_job_id is not null then
    perform fenceline.visible_job_id(p_job_id, p_tenant, p_created_by);
  end if;
  return query
  select jsonb_build_object('what', l.what, 'tenant', l.tenant, 'namespace', l.namespace, 'name', l.name,
                            'job', case when l.actor is null then fenceline.public_id(l.job_id) end, 'actor', l.actor,
                            'held', l.held, 'since', l.since,
                            'holder', fenceline.seen_job(l.holder, p_tenant, p_created_by),
                            'holder_actor', case when l.holder_actor = coalesce(p_created_by, l.holder_actor)
                                                 then l.holder_actor end)
  from (
    (select 'lock' as what, a.tenant, a.namespace, a.name, a.job_id, h.actor, true as held, a.since,
            null::bigint as holder, null as holder_actor, 0::bigint as place
     from fenceline.attempt_lock a
     left join fenceline.lock_lease h on h.owner = a.attempt_id
     where (p_job_id is null or a.job_id = p_job_id) and (p_tenant is null or a.tenant = p_tenant)
       and fenceline.is_holding(a.job_id, a.attempt_id)
     limit p_limit)
    union all
    (select 'lock', w.tenant, w.namespace, w.name, w.job_id, h.actor, false, w.since, a.job_id, o.actor, w.seq
     from fenceline.lock_wait w
     left join fenceline.lock_lease h on h.owner = w.attempt_id
     left join fenceline.attempt_lock a on a.tenant = w.tenant and a.namespace = w.namespace and a.name = w.name
     left join fenceline.lock_lease o on o.owner = a.attempt_id
     where (p_job_id is null or w.job_id = p_job_id) and (p_tenant is null or w.tenant = p_tenant)
       and fenceline.is_holding(w.job_id, w.attempt_id)
     limit p_limit)
    union all
    (select 'resource_lock', k.tenant, null, k.name, k.job_id, null, true, fenceline.id_time(k.job_id), null, null, 0
     from fenceline.resource_lock k
     where (p_job_id is null or k.job_id = p_job_id) and (p_tenant is null or k.tenant = p_tenant) limit p_limit)
    union all
    (select 'key', k.tenant, null, k.key, k.job_id, null, true, null, null, null, 0
     from fenceline.key_holder k
     where (p_job_id is null or k.job_id = p_job_id) and (p_tenant is null or k.tenant = p_tenant) limit p_limit)
    union all
    (select 'key', h.tenant, null, h.key, h.job_id, null, false, fenceline.id_time(greatest(h.seq, h.job_id)),
            (select min(k.job_id) from fenceline.key_holder k where k.tenant = h.tenant and k.key = h.key), null, h.seq
     from fenceline.held h
     where h.waiting_for = 'key' and (p_job_id is null or h.job_id = p_job_id)
       and (p_tenant is null or h.tenant = p_tenant)
     limit p_limit)
  ) l
  where p_created_by is null or l.actor = p_created_by
     or exists (select 1 from fenceline.job j where j.id = l.job_id and j.created_by = p_created_by)
  order by l.what desc, l.tenant, l.namespace, l.name, l.held desc, l.place, l.job_id;
end;
$$;

-- Locks of live attempts and who waits for them, in order: which jobs hold what, and what a job waits for. A job of null is
-- code outside handlers.
-- roles: worker, reader
create or replace function fenceline.list_locks(p_tenant text default null)
returns table (tenant text, namespace text, name text, job text, job_id bigint, held boolean, since timestamptz)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select l.tenant, l.namespace, l.name, case when h.owner is null then fenceline.public_id(l.job_id) end,
         case when h.owner is null then l.job_id end, l.held, l.since
  from (
    select a.tenant, a.namespace, a.name, a.job_id, a.attempt_id, true as held, a.since, 0::bigint as seq
    from fenceline.attempt_lock a
    union all
    select w.tenant, w.namespace, w.name, w.job_id, w.attempt_id, false, w.since, w.seq from fenceline.lock_wait w
  ) l
  left join fenceline.lock_lease h on h.owner = l.attempt_id
  where (p_tenant is null or l.tenant = p_tenant) and fenceline.is_holding(l.job_id, l.attempt_id)
  order by l.tenant, l.namespace, l.name, l.held desc, l.seq;
$$;

-- Locks (`ctx.lock`, `app.lock`) that others have waited for since p_seconds ago: the holder, which is a job or the actor of
-- code outside handlers, since when, how many wait.
-- roles: reader
create or replace function fenceline.long_locks(p_seconds double precision) returns table (
  tenant text, namespace text, name text, holder text, holder_actor text, held_since timestamptz, waiters bigint, waiting_since timestamptz
)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select w.tenant, w.namespace, w.name, case when h.owner is null then fenceline.public_id(a.job_id) end, h.actor, a.since,
         w.waiters, w.since
  from (select l.tenant, l.namespace, l.name, count(*) as waiters, min(l.since) as since
        from fenceline.lock_wait l
        where fenceline.is_holding(l.job_id, l.attempt_id)
        group by l.tenant, l.namespace, l.name) w
  join fenceline.attempt_lock a on a.tenant = w.tenant and a.namespace = w.namespace and a.name = w.name
  left join fenceline.lock_lease h on h.owner = a.attempt_id
  where w.since <= fenceline.clock() - make_interval(secs => p_seconds)
  order by w.since;
$$;

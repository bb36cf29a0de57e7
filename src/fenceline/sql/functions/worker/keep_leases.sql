-- Renews the leases of worker processes, for whoever keeps them from outside, and tells what the workers must know.
--
-- p_blocked   workers whose event loop does not turn: {worker id: {"seconds": for how long, "job_id": who, if known}}
-- Returns one row per word: `lost` (the worker's lease ended and its attempts were reclaimed), `cancel` (the handler is
-- asked to stop), `busy` (somebody holds the worker's row, as a sweep does: it was not renewed; ask again).
-- Waits for nobody: one worker whose row is held must not cost the others their leases.
-- Lock order: worker rows, skipping locked ones.
-- roles: worker
create or replace function fenceline.keep_leases(p_worker_ids integer[], p_blocked jsonb default null)
returns table (worker_id integer, job_id bigint, attempt_id uuid, word text)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_now timestamptz := fenceline.clock();
begin
  return query
  with beating as (
    select w.id from fenceline.worker w
    where w.id = any(p_worker_ids) and w.stopped_at is null order by w.id for no key update skip locked
  ), renewed as (
    update fenceline.worker w
    set heartbeat_at = v_now, lease_until = v_now + make_interval(secs => w.lease_seconds),
        blocked_at = v_now - make_interval(secs => (p_blocked -> w.id::text ->> 'seconds')::double precision),
        blocked_by = (p_blocked -> w.id::text ->> 'job_id')::bigint
    where w.id in (select b.id from beating b)
    returning w.id
  )
  select i, null::bigint, null::uuid,
         case when exists (select 1 from fenceline.worker w where w.id = i and w.stopped_at is null)
              then 'busy' else 'lost' end
  from unnest(p_worker_ids) i
  where i not in (select n.id from renewed n);

  return query
  select r.worker_id, r.job_id, r.attempt_id, 'cancel'
  from fenceline.running r where r.worker_id = any(p_worker_ids) and r.cancel_deadline is not null;
end;
$$;

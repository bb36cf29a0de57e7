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
    -- A list that lies ahead: the clock was set back, and what was claimed since cannot be compared with it.
    select w.listed_at into v_before from fenceline.worker w where w.id = p_worker_ids[1] and w.listed_at <= v_now;
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
      delete from fenceline.running d where d.job_id = any(array(
        -- Those that somebody holds, as an operator's open transaction may, wait for the next heartbeat: we do not.
        select r.job_id from fenceline.running r
        where r.worker_id = p_worker_ids[1] and r.attempt_id <> all(p_held) and r.claimed_at < v_before
        for update skip locked))
      returning d.*
    loop
      perform fenceline.settle_if_final(v_run, fenceline.end_attempt(v_run, 'released', p_metadata => '{"reason": "unknown to its worker"}'));
    end loop;
  end if;
end;
$$;

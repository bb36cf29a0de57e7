-- Takes a named lock for a block of code outside handlers, or a place in the line for it, as take_lock does for a handler:
-- they are the same locks and the same lines. The block has a lease, which each call renews (and keep_outside_locks);
-- when it is over, the block holds nothing any more.
--
-- p_owner     the block; p_holding as in take_lock
-- p_actor     who, as locks are shown
-- Returns null when the caller waits, else the fencing token: higher than that of any block that had it before.
-- Raises FL002 (tenant, namespace), FL007 (name, lease), FL022 (the waits go round).
-- Lock order: the block's lease, then as line_up.
-- Needs READ COMMITTED (FL016).
-- roles: producer, worker
create or replace function fenceline.take_outside_lock(
  p_tenant text,
  p_namespace text,
  p_name text,
  p_owner uuid,
  p_holding uuid[],
  p_lease_seconds double precision,
  p_actor text
) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_now timestamptz := fenceline.clock();
  v_lease fenceline.lock_lease;
begin
  perform fenceline.require_read_committed('take_outside_lock');
  perform fenceline.check_name('tenant', p_tenant);
  perform fenceline.check_lock_name(p_namespace, p_name);
  if p_lease_seconds is null or p_lease_seconds not between 1 and 3600 then
    raise exception using errcode = 'FL007',
      message = format('lease_seconds %s is out of range: use 1 to 3600 seconds', coalesce(p_lease_seconds::text, 'null'));
  end if;
  insert into fenceline.lock_lease as h (owner, id, actor, lease_seconds, renewed_at, lease_until)
  values (p_owner, fenceline.next_id(), coalesce(p_actor, session_user), p_lease_seconds, v_now,
          v_now + make_interval(secs => p_lease_seconds))
  on conflict (owner) do update set renewed_at = excluded.renewed_at, lease_until = excluded.lease_until
  returning h.* into v_lease;
  if v_lease.token is not null then
    return v_lease.token;  -- asked again: the reply was lost
  end if;
  if not fenceline.line_up(p_tenant, p_namespace, p_name, p_owner, v_lease.id, p_owner, p_holding) then
    return null;
  end if;
  -- From a sequence, not a clock; the timeline in the high bits, as in claim_jobs.
  update fenceline.lock_lease h set token = (fenceline.timeline() << 40) + nextval('fenceline.job_id')
  where h.owner = p_owner returning h.* into v_lease;
  return v_lease.token;
end;
$$;

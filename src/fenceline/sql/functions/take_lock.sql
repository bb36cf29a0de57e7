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

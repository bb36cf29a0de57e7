-- Takes a lock for a block, or a place in the line for it. The caller has made sure that the block's holder lives
-- (is_holding), and is known by p_job_id and p_attempt_id.
-- Returns true when the lock is held, false when the block waits. Raises FL022 (the waits go round).
-- Lock order: the advisory lock of the tenant's locks (only where somebody has to wait), then leases that are over
-- (skipping locked ones).
-- roles: none
create or replace function fenceline.line_up(
  p_tenant text,
  p_namespace text,
  p_name text,
  p_owner uuid,
  p_job_id bigint,
  p_attempt_id uuid,
  p_holding uuid[]
) returns boolean
language plpgsql as $$
declare
  v_now timestamptz := fenceline.clock();
  v_lock fenceline.attempt_lock;
begin
  -- Free, and nobody in line: one insert.
  if not exists (select 1 from fenceline.lock_wait w
                 where w.tenant = p_tenant and w.namespace = p_namespace and w.name = p_name) then
    insert into fenceline.attempt_lock (tenant, namespace, name, owner, job_id, attempt_id, since)
    values (p_tenant, p_namespace, p_name, p_owner, p_job_id, p_attempt_id, v_now)
    on conflict do nothing;
    if found then
      return true;
    end if;
  end if;

  if not fenceline.take_advisory_lock(1179926088, hashtext(p_tenant)) then
    return false;  -- whoever waits asks again
  end if;
  perform fenceline.end_outside_locks(
    fenceline.clock_step_for((select m.ran_at from fenceline.maintenance m where m.task = 'live'), 'fenceline_lock'));
  delete from fenceline.attempt_lock l
  where l.tenant = p_tenant and l.namespace = p_namespace and l.name = p_name
    and not fenceline.is_holding(l.job_id, l.attempt_id);
  delete from fenceline.lock_wait w
  where w.tenant = p_tenant and w.namespace = p_namespace and w.name = p_name
    and not fenceline.is_holding(w.job_id, w.attempt_id);
  select * into v_lock from fenceline.attempt_lock l
  where l.tenant = p_tenant and l.namespace = p_namespace and l.name = p_name;
  if v_lock.owner = p_owner then
    return true;  -- asked again: the reply was lost
  end if;
  if fenceline.leads_back(v_lock.owner, p_holding) then
    raise exception using errcode = 'FL022',
      detail = case when exists (select 1 from fenceline.lock_lease h where h.owner = v_lock.attempt_id) then ''
                    else fenceline.public_id(v_lock.job_id) end,
      message = case when v_lock.owner = any(p_holding)
        then format('lock %s %L is held by a block around this one: %s would wait for itself',
                    p_namespace, p_name, fenceline.say_holder(p_job_id, p_attempt_id))
        else format('%s would wait for ever: lock %s %L is held by %s, which waits for a lock of this one',
                    fenceline.say_holder(p_job_id, p_attempt_id), p_namespace, p_name,
                    fenceline.say_holder(v_lock.job_id, v_lock.attempt_id)) end,
      hint = 'Take locks in the same order everywhere.';
  end if;
  insert into fenceline.lock_wait (owner, seq, tenant, namespace, name, job_id, attempt_id, holding, since)
  values (p_owner, fenceline.next_id(), p_tenant, p_namespace, p_name, p_job_id, p_attempt_id, p_holding, v_now)
  on conflict do nothing;
  if v_lock.owner is not null or p_owner <> (
    select w.owner from fenceline.lock_wait w
    where w.tenant = p_tenant and w.namespace = p_namespace and w.name = p_name order by w.seq limit 1) then
    return false;
  end if;

  -- Free, and the first in line asks. One that saw no line yet may have been quicker: then the place is kept.
  insert into fenceline.attempt_lock (tenant, namespace, name, owner, job_id, attempt_id, since)
  values (p_tenant, p_namespace, p_name, p_owner, p_job_id, p_attempt_id, v_now)
  on conflict do nothing;
  if not found then
    return false;
  end if;
  delete from fenceline.lock_wait w where w.owner = p_owner;
  return true;
end;
$$;

-- Ends a block's lock, or its wait for one, and tells the next in line (channel fenceline_lock). Harmless to repeat, and
-- after the attempt is gone: the owner is a name that nobody else has.
-- Returns the block that is next, or null. A wait that begins meanwhile may go unseen here; it is asked for again soon.
-- roles: worker
create or replace function fenceline.release_lock(p_job_id bigint, p_owner uuid) returns uuid
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_lock record;
  v_next uuid;
begin
  delete from fenceline.lock_wait w where w.owner = p_owner and w.job_id = p_job_id
  returning w.tenant, w.namespace, w.name into v_lock;
  if not found then
    delete from fenceline.attempt_lock l where l.owner = p_owner and l.job_id = p_job_id
    returning l.tenant, l.namespace, l.name into v_lock;
  end if;
  if not found then
    return null;
  end if;
  select w.owner into v_next
  from fenceline.lock_wait w
  where w.tenant = v_lock.tenant and w.namespace = v_lock.namespace and w.name = v_lock.name
    and fenceline.is_holding(w.job_id, w.attempt_id)
    and not exists (select 1 from fenceline.attempt_lock l
                    where l.tenant = w.tenant and l.namespace = w.namespace and l.name = w.name)
  order by w.seq limit 1;
  if v_next is not null then
    perform pg_notify('fenceline_lock', v_next::text);
  end if;
  return v_next;
end;
$$;

-- Ends a block's lock, or its wait for one, and tells the next in line. Harmless to repeat, and after the attempt is gone.
-- roles: worker
create or replace function fenceline.release_lock(p_job_id bigint, p_owner uuid) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_lock record;
begin
  delete from fenceline.lock_wait w where w.owner = p_owner and w.job_id = p_job_id;
  for v_lock in
    delete from fenceline.attempt_lock l where l.job_id = p_job_id and l.owner = p_owner returning l.*
  loop
    if exists (select 1 from fenceline.lock_wait w
               where w.tenant = v_lock.tenant and w.namespace = v_lock.namespace and w.name = v_lock.name) then
      perform pg_notify('fenceline_lock', concat_ws('/', v_lock.tenant, v_lock.namespace, v_lock.name));
    end if;
  end loop;
end;
$$;

-- Takes a resource lock for a job, until the job ends. Raises FL013 naming the holder.
-- roles: none
create or replace function fenceline.take_resource_lock(p_tenant text, p_name text, p_job_id bigint) returns void
language plpgsql as $$
declare
  v_holder bigint;
begin
  loop
    insert into fenceline.resource_lock (tenant, name, job_id) values (p_tenant, p_name, p_job_id)
    on conflict (tenant, name) do nothing;
    exit when found;
    select r.job_id into v_holder from fenceline.resource_lock r where r.tenant = p_tenant and r.name = p_name;
    if found then
      raise exception using errcode = 'FL013',
        message = format('resource %L is locked by job %s until that job ends', p_name, fenceline.public_id(v_holder)),
        detail = fenceline.public_id(v_holder);
    end if;
  end loop;
end;
$$;

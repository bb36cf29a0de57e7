-- The job that owns a dedupe key: p_job_id if no unclaimed job has it, else that one.
-- roles: none
create or replace function fenceline.take_dedupe_key(p_tenant text, p_key text, p_job_id bigint) returns bigint
language plpgsql as $$
declare
  v_job_id bigint;
begin
  loop
    insert into fenceline.dedupe (tenant, key, job_id) values (p_tenant, p_key, p_job_id)
    on conflict (tenant, key) do nothing returning job_id into v_job_id;
    if not found then
      select d.job_id into v_job_id from fenceline.dedupe d where d.tenant = p_tenant and d.key = p_key;
    end if;
    exit when v_job_id is not null;  -- else the other job was claimed in between: the key is free again
  end loop;
  return v_job_id;
end;
$$;

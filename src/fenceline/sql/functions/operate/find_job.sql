-- A job's row; raises FL010 when it is not there, or belongs to another tenant than p_tenant (null: any).
-- roles: none
create or replace function fenceline.find_job(p_job_id bigint, p_tenant text) returns fenceline.job
language plpgsql stable as $$
declare
  v_job fenceline.job;
begin
  select * into v_job from fenceline.job j where j.id = p_job_id and (p_tenant is null or j.tenant = p_tenant);
  if not found then
    raise exception using errcode = 'FL010',
      message = format('job %s does not exist', coalesce(fenceline.public_id(p_job_id), 'null'));
  end if;
  return v_job;
end;
$$;

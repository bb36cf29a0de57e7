-- Removes every row of finished jobs.
-- roles: none
create or replace function fenceline.forget_jobs(p_job_ids bigint[]) returns void
language plpgsql as $$
begin
  delete from fenceline.log where job_id = any(p_job_ids);
  delete from fenceline.progress where job_id = any(p_job_ids);
  delete from fenceline.phase where job_id = any(p_job_ids);
  delete from fenceline.step where job_id = any(p_job_ids);
  delete from fenceline.wait where job_id = any(p_job_ids);
  delete from fenceline.signal where job_id = any(p_job_ids);
  delete from fenceline.callback where job_id = any(p_job_ids);
  delete from fenceline.checkpoint where job_id = any(p_job_ids);
  delete from fenceline.refused_write where job_id = any(p_job_ids);
  delete from fenceline.offspring where parent = any(p_job_ids);
  -- Final rows and the others are in an index of their own each.
  delete from fenceline.history where job_id = any(p_job_ids) and final;
  delete from fenceline.history where job_id = any(p_job_ids) and not final;
  delete from fenceline.job where id = any(p_job_ids);
end;
$$;

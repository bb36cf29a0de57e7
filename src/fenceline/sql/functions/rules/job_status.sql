-- Where a job's row is, says what it is; null: there is no such job.
-- roles: none
create or replace function fenceline.job_status(p_job_id bigint) returns text
language sql stable as $$
  select case
    when exists (select 1 from fenceline.ready r where r.job_id = p_job_id) then 'queued'
    when exists (select 1 from fenceline.running r where r.job_id = p_job_id) then
      (select case when r.started_at is null then 'claimed' else 'running' end
       from fenceline.running r where r.job_id = p_job_id)
    when exists (select 1 from fenceline.timer t where t.job_id = p_job_id) then 'scheduled'
    when exists (select 1 from fenceline.held h where h.job_id = p_job_id) then
      (select case when h.waiting_for = 'approval' then 'awaiting_approval' else 'waiting' end
       from fenceline.held h where h.job_id = p_job_id)
    else (select h.outcome from fenceline.history h where h.job_id = p_job_id and h.final) end;
$$;

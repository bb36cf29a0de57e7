-- Whether a claim may start a job that has a dedupe key: not while somebody who was answered with it (take_dedupe_key) has
-- not committed yet. Waits for nobody. Until the claim commits the key is locked against new answers.
-- A lane where a job was passed over is noted: when the transaction ends nobody notifies the lane's workers, so maintain does.
-- roles: none
create or replace function fenceline.lock_dedupe_key(p_job_id bigint, p_lane text) returns boolean
language plpgsql as $$
declare
  v_job record;
begin
  select j.tenant, j.dedupe_key into v_job from fenceline.job j where j.id = p_job_id;
  perform 1 from fenceline.dedupe d where d.tenant = v_job.tenant and d.key = v_job.dedupe_key for update skip locked;
  if found
     or not exists (select 1 from fenceline.dedupe d where d.tenant = v_job.tenant and d.key = v_job.dedupe_key) then
    return true;
  end if;
  insert into fenceline.lane_check (lane)
  select p_lane where not exists (select 1 from fenceline.lane_check c where c.lane = p_lane);
  return false;
end;
$$;

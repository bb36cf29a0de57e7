-- settle, for one attempt that end_attempt has just ended; does nothing when the job goes on (outcome null).
-- roles: none
create or replace function fenceline.settle_if_final(p_run fenceline.running, p_outcome text) returns void
language plpgsql as $$
begin
  if p_outcome is not null then
    perform fenceline.settle(array[p_run.job_id], p_run.uses);
  end if;
end;
$$;

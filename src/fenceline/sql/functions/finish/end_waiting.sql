-- Ends jobs that no worker holds: out of ready, timer and held, into a final history row, and all that follows.
-- Returns the ids that were ended; an id that a worker claimed in the meantime is not among them.
-- Lock order: ready, timer, held; then as settle.
-- roles: none
create or replace function fenceline.end_waiting(p_job_ids bigint[], p_outcome text, p_error jsonb, p_actor text)
returns bigint[]
language plpgsql as $$
declare
  v_ended bigint[];
begin
  v_ended := fenceline.bury_waiting(p_job_ids, p_outcome, p_error, p_actor);
  if v_ended is not null then
    perform fenceline.settle(v_ended, 63);
  end if;
  return coalesce(v_ended, '{}');
end;
$$;

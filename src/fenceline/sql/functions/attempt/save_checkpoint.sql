-- Keeps the state from which the next attempt, or a retry as a new job, goes on. Raises FL012, FL005.
-- roles: worker
create or replace function fenceline.save_checkpoint(p_job_id bigint, p_attempt_id uuid, p_state jsonb) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_run fenceline.running;
begin
  perform fenceline.check_size('the checkpoint', p_state);
  v_run := fenceline.live_attempt(p_job_id, p_attempt_id);
  insert into fenceline.checkpoint as c (job_id, state, token, updated_at)
  values (p_job_id, coalesce(p_state, 'null'), v_run.token, fenceline.clock())
  on conflict (job_id) do update set state = excluded.state, token = excluded.token, updated_at = excluded.updated_at;
end;
$$;

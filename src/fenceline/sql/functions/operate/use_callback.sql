-- Sends the signal of a callback (create_callback), which is used up by that.
-- Returns whether it was: a secret that is unknown, expired or used, and one of a job that has ended or is gone, answer alike.
-- Raises FL005 (payload), FL023; then it is not used up.
-- Lock order: the callback's row, then as signal_job.
-- roles: worker
create or replace function fenceline.use_callback(p_hash bytea, p_payload jsonb default null) returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_callback fenceline.callback;
begin
  delete from fenceline.callback c where c.hash = p_hash returning * into v_callback;
  if not found or v_callback.expires_at <= fenceline.clock() then
    return false;
  end if;
  perform fenceline.signal_job(v_callback.job_id, v_callback.signal, p_payload, 'callback');
  return true;
exception when sqlstate 'FL010' or sqlstate 'FL011' then
  return false;
end;
$$;

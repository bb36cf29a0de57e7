-- The state that a job's handler kept last: one row, or none. `token` tells the attempt. Raises FL010.
-- roles: producer, worker, reader
create or replace function fenceline.get_checkpoint(p_job_id bigint, p_tenant text default null)
returns table (state jsonb, token bigint, updated_at timestamptz)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform fenceline.find_job(p_job_id, p_tenant);
  return query select c.state, c.token, c.updated_at from fenceline.checkpoint c where c.job_id = p_job_id;
end;
$$;

-- The steps of a job in order: what was done, what failed, what is listed and still to come.
-- roles: producer, worker, reader
create or replace function fenceline.list_steps(p_job_id bigint, p_tenant text default null)
returns table (name text, status text, result jsonb, error jsonb, token bigint, ran_seconds double precision,
               ended_at timestamptz)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform fenceline.find_job(p_job_id, p_tenant);
  return query
  select s.name, s.status, s.result, s.error, s.token, s.ran_seconds, s.ended_at
  from fenceline.step s where s.job_id = p_job_id order by s.position, s.ended_at, s.name;
end;
$$;

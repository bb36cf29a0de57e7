-- The phases of a job in order, of all its attempts, each with the progress and the items that it ended with. Progress before
-- the first phase of an attempt has no name. `ended_at` is null for the phase that a live attempt is in.
-- Raises FL010.
-- roles: producer, worker, reader
create or replace function fenceline.list_phases(p_job_id bigint, p_tenant text default null)
returns table (phase text, progress jsonb, attempt smallint, token bigint, started_at timestamptz, ended_at timestamptz)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform fenceline.find_job(p_job_id, p_tenant);
  return query
  select s.phase, s.progress, a.number, a.token, s.started_at,
         coalesce(lead(s.started_at) over (partition by s.attempt_id order by s.position), a.ended_at)
  from (
    select k.phase, k.progress, k.attempt_id, k.position, k.started_at from fenceline.phase k where k.job_id = p_job_id
    union all
    select p.phase, p.progress, p.attempt_id, null, coalesce(p.started_at, p.updated_at)
    from fenceline.progress p where p.job_id = p_job_id and (p.phase is not null or p.progress is not null)
  ) s
  left join fenceline.list_attempts(p_job_id) a on a.attempt_id = s.attempt_id
  order by s.position;
end;
$$;

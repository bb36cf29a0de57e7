-- Keeps the names that a backend has given to the messages of jobs, for diagnosis. Backends that use the job's public id need not say
-- so (message_id).
-- roles: producer, worker
create or replace function fenceline.name_messages(p_job_ids bigint[], p_backend_job_ids text[]) returns void
language sql security definer set search_path = pg_catalog, pg_temp set enable_hashjoin = off set enable_mergejoin = off set jit = off as $$
  update fenceline.job j set backend_job_id = left(g.name, 200)
  from unnest(p_job_ids, p_backend_job_ids) g(id, name)
  where j.id = g.id and j.delivery <> 'postgres' and j.backend_job_id is distinct from left(g.name, 200);
$$;

-- Many times submit_job in one transaction, for callers who do not know of each other: one commit serves them all. All or
-- none: what it raises is about one of them, and then the caller submits them one by one.
-- Only for jobs whose enqueue waits for nobody: without dedupe key, idempotency key and resource lock.
-- Returns a row per job, in order.
-- roles: producer, worker
create or replace function fenceline.submit_jobs(
  p_kinds text[],
  p_args json[],
  p_options json[],
  p_actors text[],
  p_defaults json[],
  p_tenants text[]
) returns table (id text, created boolean, job jsonb)
language plpgsql security definer set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan as $$
begin
  for v_i in 1 .. coalesce(cardinality(p_kinds), 0) loop
    return query
    select s.id, s.created, s.job
    from fenceline.submit_job(p_kinds[v_i], p_args[v_i], p_options[v_i], p_actors[v_i], p_defaults[v_i], p_tenants[v_i]) s;
  end loop;
end;
$$;

-- Asks for a notification (`fenceline_ended`, ids joined by commas) when these jobs end, for so many seconds.
-- A job may end before the request is visible to whoever ends it: a client asks for outcomes once after this, and again
-- from time to time.
-- roles: producer, worker
create or replace function fenceline.watch_jobs(p_job_ids bigint[], p_seconds double precision default 60)
returns void
language sql security definer set search_path = pg_catalog, pg_temp as $$
  insert into fenceline.watch (job_id, until)
  select distinct i, fenceline.clock() + make_interval(secs => p_seconds) from unnest(p_job_ids) i order by i
  on conflict (job_id) do update set until = greatest(watch.until, excluded.until);
$$;

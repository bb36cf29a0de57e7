-- How far retention is behind: finished jobs that should have been forgotten p_late_seconds ago or earlier, counted up to
-- 10,000, and since when the first of them should be gone.
-- roles: reader
create or replace function fenceline.retention_backlog(
  p_late_seconds double precision default 600,
  out jobs bigint,
  out since timestamptz
)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select count(*), min(f.over_at)
  from fenceline.find_past_retention(fenceline.clock() - make_interval(secs => p_late_seconds), 10000) f;
$$;

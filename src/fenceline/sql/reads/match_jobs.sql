-- The ids of one page of jobs that a filter finds, newest first (filter_jobs), for who must know them all before the first is
-- touched. Raises FL007 (status).
-- roles: admin
create or replace function fenceline.match_jobs(
  p_statuses text[],
  p_kinds text[],
  p_lanes text[],
  p_tenants text[],
  p_labels jsonb,
  p_created_after timestamptz,
  p_created_before timestamptz,
  p_created_by text,
  p_limit integer default 1000,
  p_cursor bigint default null,
  p_more jsonb default null,
  out job_ids bigint[],
  out next_cursor bigint
)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform fenceline.check_statuses(p_statuses);
  select f.job_ids, f.next_cursor into match_jobs.job_ids, match_jobs.next_cursor
  from fenceline.filter_jobs(p_statuses, p_kinds, p_lanes, p_tenants, p_labels, p_created_after, p_created_before,
                             p_created_by, p_limit, p_cursor, p_more) f;
end;
$$;

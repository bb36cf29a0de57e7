-- As filter_jobs, by the filters that there were in version 0.1.
-- roles: none
create or replace function fenceline.find_jobs(
  p_statuses text[],
  p_kinds text[],
  p_lanes text[],
  p_tenants text[],
  p_labels jsonb,
  p_created_after timestamptz,
  p_created_before timestamptz,
  p_created_by text,
  p_limit integer,
  p_cursor bigint,
  out job_ids bigint[],
  out next_cursor bigint
)
language sql stable as $$
  select f.job_ids, f.next_cursor
  from fenceline.filter_jobs(p_statuses, p_kinds, p_lanes, p_tenants, p_labels, p_created_after, p_created_before,
                             p_created_by, p_limit, p_cursor, null) f;
$$;

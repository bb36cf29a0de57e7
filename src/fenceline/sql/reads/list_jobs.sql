-- As page_jobs, with args and results and nothing cut, and with what there was in version 0.1: its clients know of nothing
-- else. A page ends at 32 MiB.
-- roles: producer, worker, reader
create or replace function fenceline.list_jobs(
  p_statuses text[] default null,
  p_kinds text[] default null,
  p_lanes text[] default null,
  p_tenants text[] default null,
  p_labels jsonb default null,
  p_created_after timestamptz default null,
  p_created_before timestamptz default null,
  p_created_by text default null,
  p_limit integer default 50,
  p_cursor bigint default null,
  out jobs jsonb,
  out next_cursor bigint
)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select coalesce((
           select jsonb_agg(j.job - fenceline.later_job_fields() order by j.place)
           from jsonb_array_elements(p.jobs::jsonb) with ordinality j(job, place)), '[]'),
         p.next_cursor
  from fenceline.page_jobs(p_statuses, p_kinds, p_lanes, p_tenants, p_labels, p_created_after, p_created_before,
                           p_created_by, p_limit, p_cursor, array['args', 'result'], 33554432, null) p;
$$;

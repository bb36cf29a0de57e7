-- One page of a list of jobs, newest first: `jobs`, a JSON array of rows of the view `jobs`, and `next_cursor`, null on
-- the last page.
-- Filters and bounds as in find_jobs. An unknown status is FL007, a limit outside 1 to 1000 too.
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
language plpgsql stable security definer set search_path = pg_catalog, pg_temp
-- The last step reads the page's jobs by id; a young partition looks small enough to be scanned, and grows.
set enable_seqscan = off
as $$
declare
  v_ids bigint[];
begin
  perform fenceline.check_statuses(p_statuses);
  if p_limit is null or p_limit not between 1 and 1000 then
    raise exception using errcode = 'FL007', message = format('limit %s is out of range: use 1 to 1000', p_limit);
  end if;
  select f.job_ids, f.next_cursor into v_ids, next_cursor
  from fenceline.find_jobs(p_statuses, p_kinds, p_lanes, p_tenants, p_labels, p_created_after, p_created_before,
                           p_created_by, p_limit, p_cursor) f;
  select coalesce(jsonb_agg(to_jsonb(v) - 'job_id' order by v.job_id desc), '[]') into jobs
  from fenceline.jobs v where v.job_id = any(v_ids);
end;
$$;

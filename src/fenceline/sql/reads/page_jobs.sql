-- One page of a list of jobs, newest first, bounded in rows and in bytes: `jobs`, a JSON array as text, of rows of the view
-- `jobs`, and `next_cursor`, null on the last page.
--
-- p_limit       at most so many jobs, 1 to 1000
-- p_fields      what else each carries, of args and result: these can be long, and are not read unless asked for
-- p_most_bytes  the page ends before the job that would make it longer; one job it always has
-- p_most_value  args, result, error, errors and progress that are longer are cut (cut_value); null: none is
-- Filters as in filter_jobs. An unknown status or field is FL007, a limit out of range too.
-- roles: producer, worker, reader
create or replace function fenceline.page_jobs(
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
  p_fields text[] default '{}',
  p_most_bytes integer default 4194304,
  p_most_value integer default 16384,
  p_more jsonb default null,
  out jobs text,
  out next_cursor bigint
)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp
-- Reads the page's jobs by id; a young partition looks small enough to be scanned, and grows.
set enable_seqscan = off set jit = off
as $$
declare
  c_optional constant text[] := array['args', 'result'];
  -- Jobs are read so many at a time, so that a page that is full early has not read all.
  c_slice constant integer := 50;
  v_ids bigint[];
  v_items text[] := '{}';
  v_bytes bigint := 0;
  v_last bigint;
  v_job record;
begin
  perform fenceline.check_statuses(p_statuses);
  if p_limit is null or p_limit not between 1 and 1000 then
    raise exception using errcode = 'FL007', message = format('limit %s is out of range: use 1 to 1000', p_limit);
  end if;
  if not p_fields <@ c_optional then
    raise exception using errcode = 'FL007',
      message = format('fields %s are not all known', left(p_fields::text, 200)), hint = 'Use args and result.';
  end if;
  select f.job_ids, f.next_cursor into v_ids, next_cursor
  from fenceline.filter_jobs(p_statuses, p_kinds, p_lanes, p_tenants, p_labels, p_created_after, p_created_before,
                             p_created_by, p_limit, p_cursor, p_more) f;
  for v_start in 1 .. cardinality(v_ids) by c_slice loop
    for v_job in
      -- A value that is not asked for stays where it is: the case keeps it from being fetched.
      select j.job_id, (to_jsonb(j) - 'job_id' - (array(select o from unnest(c_optional) o where o <> all(p_fields))))::text
             as shown
      from (
        select v.job_id, v.id, v.kind, v.status, v.waiting_for, v.lane, v.priority, v.tenant,
               case when 'args' = any(p_fields) then fenceline.cut_value(v.args, p_most_value) end as args,
               v.labels, v.attempt, v.max_attempts, v.created_at, v.created_by, v.run_at, v.claimed_at, v.started_at,
               v.finished_at, v.worker, v.phase, fenceline.cut_value(v.progress, p_most_value) as progress,
               case when 'result' = any(p_fields) then fenceline.cut_value(v.result, p_most_value) end as result,
               fenceline.cut_value(v.error, p_most_value) as error, fenceline.cut_value(v.errors, p_most_value) as errors,
               v.cancel_requested_at, v.retry_of, v.parent, v.delivery, v.backend_job_id, v.runner,
               v.snapshot_hash, v.requires_hash, v.identity, v.after, v.key, v.key_limit, v.resource_lock, v.dedupe_key,
               v.expires_at, v.timeout, v."group", v.retry
        from fenceline.jobs v where v.job_id = any(v_ids[v_start : v_start + c_slice - 1])) j
      order by j.job_id desc
    loop
      v_bytes := v_bytes + octet_length(v_job.shown) + 2;
      if v_bytes > p_most_bytes and cardinality(v_items) > 0 then
        next_cursor := v_last;
        jobs := '[' || array_to_string(v_items, ', ') || ']';
        return;
      end if;
      v_items := v_items || v_job.shown;
      v_last := v_job.job_id;
    end loop;
  end loop;
  jobs := '[' || array_to_string(v_items, ', ') || ']';
end;
$$;

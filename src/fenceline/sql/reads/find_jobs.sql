-- Ids of jobs that match every given filter, newest first, below a cursor: one page of a list.
--
-- p_statuses … p_created_by   null: any; within a list any value matches, labels must all match
-- p_cursor    the last id of the page before; null: from the newest
-- Returns up to p_limit ids, and the cursor of the next page (null: there is none). The scan is bounded: where filters
-- are combined so that matches are far apart, a page may have fewer ids, even none, and still a next cursor.
--
-- How it stays index-backed (docs/adr/0003): a status names the table to walk; else the newest jobs are walked by id,
-- and when those do not fill the page the range index finds the others, in windows of ids that grow as they go back:
-- what is near is found without looking at what is far, and what is rare in a few steps. Where filters
-- are combined no index may serve them, and windows are read through; they stop growing when they become slow, and after
-- some 60 ms the page ends where it is.
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
language plpgsql stable
-- Null filters fold away and constants pick the index: these statements are planned anew each time.
set plan_cache_mode = force_custom_plan
set enable_seqscan = off
as $$
declare
  -- Moments before the first id and after the last one there can be are as good as those.
  v_from bigint := case when p_created_after is null then 0
                        else fenceline.id_at(least(greatest(p_created_after, '2024-01-01Z'), '2093-01-01Z')) end;
  v_below bigint := least(coalesce(p_cursor, 9223372036854775807),
                          case when p_created_before is null then 9223372036854775807
                               else fenceline.id_at(least(greatest(p_created_before, '2024-01-01Z'), '2093-01-01Z')) end);
  v_filtered boolean := num_nonnulls(p_kinds, p_lanes, p_tenants, p_labels, p_created_by) > 0;
  v_combined boolean := num_nonnulls(p_kinds, p_lanes, p_tenants, p_labels, p_created_by) > 1;
  v_budget integer := case when v_filtered then greatest(5000, p_limit) else p_limit end;
  v_walked bigint[];
  v_low bigint;
  v_high bigint;
  v_span bigint;
  v_started timestamptz := clock_timestamp();
  v_window_started timestamptz;
  v_is_slow boolean := false;
begin
  if p_statuses is not null then
    v_walked := fenceline.newest_by_status(p_statuses, v_from, v_below, v_budget);
    job_ids := v_walked;
    if v_filtered then
      job_ids := array(
        select j.id from fenceline.job j
        where j.id = any(v_walked)
          and (p_kinds is null or j.kind = any(p_kinds)) and (p_lanes is null or j.lane = any(p_lanes))
          and (p_tenants is null or j.tenant = any(p_tenants)) and (p_labels is null or j.labels @> p_labels)
          and (p_created_by is null or j.created_by = p_created_by)
        order by j.id desc limit p_limit);
    end if;
    if cardinality(job_ids) = p_limit then
      next_cursor := job_ids[p_limit];
    elsif cardinality(v_walked) = v_budget then
      next_cursor := v_walked[v_budget];
    end if;
    return;
  end if;

  -- The walk ends with the page, or with the budget.
  job_ids := array(
    select j.id
    from (select w.id, w.kind, w.lane, w.tenant, w.labels, w.created_by from fenceline.job w
          where w.id < v_below and w.id >= v_from order by w.id desc limit v_budget) j
    where (p_kinds is null or j.kind = any(p_kinds)) and (p_lanes is null or j.lane = any(p_lanes))
      and (p_tenants is null or j.tenant = any(p_tenants)) and (p_labels is null or j.labels @> p_labels)
      and (p_created_by is null or j.created_by = p_created_by)
    limit p_limit);
  if v_filtered and cardinality(job_ids) < p_limit then
    select min(w.id), max(w.id) - min(w.id) into v_high, v_span
    from (select j.id from fenceline.job j where j.id < v_below and j.id >= v_from order by j.id desc limit v_budget) w;
    v_span := greatest(v_span, 60000::bigint << 22);
    v_from := coalesce((select j.id from fenceline.job j where j.id >= v_from order by j.id limit 1), v_high);
    while cardinality(job_ids) < p_limit and v_high > v_from loop
      v_window_started := clock_timestamp();
      if v_combined and v_window_started - v_started > interval '60 milliseconds' then
        next_cursor := v_high;
        return;
      end if;
      if not v_is_slow then
        v_span := least(v_span, 1::bigint << 60) * 4;
      end if;
      v_low := greatest(v_high - v_span, v_from);
      -- "id + 0": not by the primary key, which would walk over everything that does not match.
      job_ids := job_ids || array(
        select j.id from fenceline.job j
        where j.id < v_high and j.id >= v_low
          and (p_kinds is null or j.kind = any(p_kinds)) and (p_lanes is null or j.lane = any(p_lanes))
          and (p_tenants is null or j.tenant = any(p_tenants)) and (p_labels is null or j.labels @> p_labels)
          and (p_created_by is null or j.created_by = p_created_by)
        order by j.id + 0 desc limit p_limit - cardinality(job_ids));
      v_high := v_low;
      v_is_slow := v_combined and clock_timestamp() - v_window_started > interval '8 milliseconds';
    end loop;
  end if;
  if cardinality(job_ids) = p_limit then
    next_cursor := job_ids[p_limit];
  end if;
end;
$$;

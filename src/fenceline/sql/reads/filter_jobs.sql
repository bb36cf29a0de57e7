-- Ids of jobs that match every given filter, newest first, below a cursor: one page of a list.
--
-- p_statuses … p_created_by   null: any; within a list any value matches, labels must all match
-- p_more      filters that fewer ask for: parent (an id), group, key, worker (a name), phase, error (a text in it); null: none
-- p_cursor    the last id of the page before; null: from the newest
-- Returns up to p_limit ids, and the cursor of the next page (null: there is none). The scan is bounded: where filters
-- are combined so that matches are far apart, a page may have fewer ids, even none, and still a next cursor.
--
-- How it stays index-backed (docs/adr/0003): a status names the table to walk; else the newest jobs are walked by id,
-- and when those do not fill the page the range index finds the others, in windows of ids that grow as they go back:
-- what is near is found without looking at what is far, and what is rare in a few steps. Where filters
-- are combined no index may serve them, and windows are read through; they stop growing when they become slow, and after
-- some 60 ms the page ends where it is. Children are found by their parent's list. For key, worker and phase there is no
-- index, nor for a group without its tenant: windows, as where filters are combined; by worker and phase they are read
-- from what ran. A text in the error is looked for among the jobs that ended badly, by their statuses.
-- roles: none
create or replace function fenceline.filter_jobs(
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
  p_more jsonb,
  out job_ids bigint[],
  out next_cursor bigint
)
language plpgsql stable
-- Null filters fold away and constants pick the index: these statements are planned anew each time.
set plan_cache_mode = force_custom_plan
set enable_seqscan = off set jit = off
as $$
declare
  -- Moments before the first id and after the last one there can be are as good as those.
  v_from bigint := case when p_created_after is null then 0
                        else fenceline.id_at(least(greatest(p_created_after, '2024-01-01Z'), '2093-01-01Z')) end;
  v_below bigint := least(coalesce(p_cursor, 9223372036854775807),
                          case when p_created_before is null then 9223372036854775807
                               else fenceline.id_at(least(greatest(p_created_before, '2024-01-01Z'), '2093-01-01Z')) end);
  v_parent bigint := (p_more ->> 'parent')::bigint;
  v_group text := p_more ->> 'group';
  v_key text := p_more ->> 'key';
  v_phase text := p_more ->> 'phase';
  v_error text := p_more ->> 'error';
  v_workers integer[] := case when p_more ? 'worker' then fenceline.worker_ids(p_more ->> 'worker') end;
  v_anywhere boolean := v_workers is null and v_phase is null;
  -- Of the jobs that succeeded none has an error, nor those that have not ended.
  v_statuses text[] := case when v_error is null then p_statuses else array(
    select s from unnest(array['failed', 'cancelled', 'succeeded_with_errors']) s
    where p_statuses is null or s = any(p_statuses)) end;
  v_unindexed boolean := num_nonnulls(v_key, v_phase, v_workers, v_error) > 0 or (v_group is not null and p_tenants is null);
  v_count integer := num_nonnulls(p_kinds, p_lanes, p_tenants, p_labels, p_created_by, v_parent, v_group);
  v_filtered boolean := v_unindexed or v_count > 0;
  v_combined boolean := v_unindexed or v_count > 1;
  v_budget integer := case when v_filtered then greatest(5000, p_limit) else p_limit end;
  v_walked bigint[];
  v_there bigint[];
  v_low bigint;
  v_high bigint;
  v_span bigint;
  v_started timestamptz := clock_timestamp();
  v_window_started timestamptz;
  v_is_slow boolean := false;
begin
  job_ids := '{}';
  if v_workers = '{}' then
    return;
  end if;
  if v_parent is not null or v_statuses is not null then
    if v_parent is null then
      v_walked := fenceline.newest_by_status(v_statuses, v_from, v_below, v_budget);
    else
      v_walked := array(
        select o.child from fenceline.offspring o where o.parent = v_parent and o.child < v_below and o.child >= v_from
        order by o.child desc limit v_budget);
    end if;
    job_ids := v_walked;
    if v_filtered then
      -- Looked up one by one: "id = any(…)" would look for each of them in each partition (before PostgreSQL 17).
      job_ids := array(
        select j.id
        from unnest(v_walked) w(id)
        cross join lateral (
          select l.id, l.kind, l.lane, l.tenant, l.labels, l.created_by, l.group_name, l.key
          from fenceline.job l where l.id = w.id limit 1) j
        where (p_kinds is null or j.kind = any(p_kinds)) and (p_lanes is null or j.lane = any(p_lanes))
          and (p_tenants is null or j.tenant = any(p_tenants)) and (p_labels is null or j.labels @> p_labels)
          and (p_created_by is null or j.created_by = p_created_by)
          and (v_group is null or j.group_name = v_group) and (v_key is null or j.key = v_key)
          and (v_anywhere or cardinality(fenceline.found_at(v_workers, v_phase, j.id, j.id + 1, 1)) = 1)
          -- No function of its own: called for each of these jobs, it would take longer than all the rest.
          and (v_error is null or exists (
            select 1 from fenceline.history h
            where h.job_id = j.id and h.final
              and position(lower(v_error)
                           in lower(concat_ws(' ', h.error ->> 'type', h.error ->> 'code', h.error ->> 'message'))) > 0))
          and (v_parent is null or v_statuses is null or fenceline.job_status(j.id) = any(v_statuses))
        order by j.id desc limit p_limit);
    end if;
    if cardinality(job_ids) = p_limit then
      next_cursor := job_ids[p_limit];
    elsif cardinality(v_walked) = v_budget then
      next_cursor := v_walked[v_budget];
    end if;
    return;
  end if;

  if v_anywhere then
    -- The walk ends with the page, or with the budget.
    job_ids := array(
      select j.id
      from (select w.id, w.kind, w.lane, w.tenant, w.labels, w.created_by, w.group_name, w.key from fenceline.job w
            where w.id < v_below and w.id >= v_from order by w.id desc limit v_budget) j
      where (p_kinds is null or j.kind = any(p_kinds)) and (p_lanes is null or j.lane = any(p_lanes))
        and (p_tenants is null or j.tenant = any(p_tenants)) and (p_labels is null or j.labels @> p_labels)
        and (p_created_by is null or j.created_by = p_created_by)
        and (v_group is null or j.group_name = v_group) and (v_key is null or j.key = v_key)
      limit p_limit);
  end if;
  if v_filtered and cardinality(job_ids) < p_limit then
    select case when v_anywhere then min(w.id) else max(w.id) + 1 end, max(w.id) - min(w.id) into v_high, v_span
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
      if not v_anywhere then
        v_there := fenceline.found_at(v_workers, v_phase, v_low, v_high, v_budget);
        if cardinality(v_there) = v_budget then
          v_low := v_there[v_budget];
        end if;
      end if;
      -- "id + 0": not by the primary key, which would walk over everything that does not match.
      job_ids := job_ids || array(
        select j.id from fenceline.job j
        where j.id < v_high and j.id >= v_low
          and (p_kinds is null or j.kind = any(p_kinds)) and (p_lanes is null or j.lane = any(p_lanes))
          and (p_tenants is null or j.tenant = any(p_tenants)) and (p_labels is null or j.labels @> p_labels)
          and (p_created_by is null or j.created_by = p_created_by)
          and (v_group is null or j.group_name = v_group) and (v_key is null or j.key = v_key)
          and (v_anywhere or j.id = any(v_there))
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

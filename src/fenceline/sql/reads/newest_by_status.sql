-- The newest ids between two bounds of jobs in the given statuses, at most p_limit: each status is one ordered walk.
-- roles: none
create or replace function fenceline.newest_by_status(
  p_statuses text[],
  p_from bigint,
  p_below bigint,
  p_limit integer
) returns bigint[]
language plpgsql stable set plan_cache_mode = force_custom_plan as $$
declare
  v_ids bigint[];
  v_status text;
  v_more bigint[];
  v_low bigint;
  v_high bigint;
  v_span bigint;
begin
  v_ids := array(
    (select r.job_id from fenceline.ready r
     where 'queued' = any(p_statuses) and r.job_id < p_below and r.job_id >= p_from order by r.job_id desc limit p_limit)
    union all
    (select r.job_id from fenceline.running r
     where r.job_id < p_below and r.job_id >= p_from
       and (case when r.started_at is null then 'claimed' else 'running' end) = any(p_statuses)
     order by r.job_id desc limit p_limit)
    union all
    (select t.job_id from fenceline.timer t
     where 'scheduled' = any(p_statuses) and t.job_id < p_below and t.job_id >= p_from order by t.job_id desc limit p_limit)
    union all
    (select h.job_id from fenceline.held h
     where 'awaiting_approval' = any(p_statuses) and h.waiting_for = 'approval' and h.job_id < p_below
       and h.job_id >= p_from order by h.job_id desc limit p_limit)
    union all
    (select h.job_id from fenceline.held h
     where 'waiting' = any(p_statuses) and h.waiting_for = 'dependencies' and h.job_id < p_below
       and h.job_id >= p_from order by h.job_id desc limit p_limit)
    union all
    (select h.job_id from fenceline.held h
     where 'waiting' = any(p_statuses) and h.waiting_for = 'key' and h.job_id < p_below
       and h.job_id >= p_from order by h.job_id desc limit p_limit)
    union all
    (select h.job_id from fenceline.held h
     where 'waiting' = any(p_statuses) and h.waiting_for = 'signal' and h.job_id < p_below
       and h.job_id >= p_from order by h.job_id desc limit p_limit));
  foreach v_status in array p_statuses loop
    if v_status in ('succeeded_with_errors', 'failed', 'cancelled') then
      v_ids := v_ids || array(
        select h.job_id from fenceline.history h
        where h.final and h.outcome <> 'succeeded' and h.outcome = v_status and h.job_id < p_below
          and h.job_id >= p_from order by h.job_id desc limit p_limit);
    elsif v_status = 'succeeded' then
      -- Nearly all are: walk by id. Where that was not so, the range index finds them, in windows that grow as in
      -- find_jobs.
      v_more := array(
        select w.job_id from (
          select h.job_id, h.outcome from fenceline.history h
          where h.final and h.job_id < p_below and h.job_id >= p_from
          order by h.job_id desc limit p_limit + 5000) w
        where w.outcome = 'succeeded' limit p_limit);
      if cardinality(v_more) < p_limit then
        select min(w.job_id), max(w.job_id) - min(w.job_id) into v_high, v_span
        from (select h.job_id from fenceline.history h where h.final and h.job_id < p_below and h.job_id >= p_from
              order by h.job_id desc limit p_limit + 5000) w;
        v_span := greatest(v_span, 60000::bigint << 22);
        while cardinality(v_more) < p_limit and v_high > p_from loop
          v_span := least(v_span, 1::bigint << 60) * 4;
          v_low := greatest(v_high - v_span, p_from);
          v_more := v_more || array(
            select h.job_id from fenceline.history h
            where h.final and h.outcome = 'succeeded' and h.job_id < v_high and h.job_id >= v_low
            order by h.job_id + 0 desc limit p_limit - cardinality(v_more));
          v_high := v_low;
        end loop;
      end if;
      v_ids := v_ids || v_more;
    end if;
  end loop;
  return array(select i from unnest(v_ids) i order by i desc limit p_limit);
end;
$$;

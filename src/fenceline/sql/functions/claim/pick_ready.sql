-- Locks up to p_limit claimable rows of a lane in order, and returns where they are and the or of their `uses`.
--
-- p_alone     false: no suspects; true: only suspects (jobs that shared a process with a crash and rerun alone)
-- p_claimer   who asks, as `claimer` knows it: jobs that are meant for others are passed over
-- p_floor_priorities, p_floor_seqs
--             per priority (highest first), the lowest seq that the worker has not seen claimed. A scan that starts
--             there does not walk over the dead index entries of claimed jobs while something pins vacuum. Between the
--             known priorities the scan is unbounded.
-- Plans: every scan is a range of ready_order; "priority = " where it can be, because a b-tree positions itself by
-- equality only; always in its order, never sorted: without statistics a few conditions look so selective that reading
-- and sorting the whole lane seems cheap.
-- roles: none
create or replace function fenceline.pick_ready(
  p_lane text,
  p_kinds text[],
  p_limit integer,
  p_alone boolean,
  p_floor_priorities smallint[],
  p_floor_seqs bigint[],
  p_claimer jsonb,
  out rows tid[],
  out uses integer
)
language plpgsql set enable_sort = off set enable_bitmapscan = off set jit = off as $$
declare
  v_rows tid[];
  v_uses integer;
  v_high integer := 32767;
  v_left integer := p_limit;
begin
  rows := '{}';
  uses := 0;
  for v_i in 1 .. coalesce(cardinality(p_floor_priorities), 0) loop
    if p_floor_priorities[v_i] < v_high then
      select coalesce(array_agg(p.ctid), '{}'), coalesce(bit_or(p.uses), 0) into v_rows, v_uses
      from (select r.ctid, r.uses from fenceline.ready r
            where r.lane = p_lane and r.priority <= v_high and r.priority > p_floor_priorities[v_i]
              and fenceline.runs_kind(p_kinds, r.kind) and coalesce(r.runner <@ p_claimer, true) and (r.deaths is null) <> p_alone
              and (r.uses & 512 /* refused */ is distinct from 512 or not fenceline.is_refused_by(r.job_id, p_claimer))
              and (r.uses & 1 /* dedupe */ is distinct from 1 or fenceline.lock_dedupe_key(r.job_id, p_lane))
            order by r.lane, r.priority desc, r.seq limit v_left for update skip locked) p;
      rows := rows || v_rows;
      uses := uses | v_uses;
      v_left := p_limit - cardinality(rows);
      exit when v_left = 0;
    end if;
    select coalesce(array_agg(p.ctid), '{}'), coalesce(bit_or(p.uses), 0) into v_rows, v_uses
    from (select r.ctid, r.uses from fenceline.ready r
          where r.lane = p_lane and r.priority = p_floor_priorities[v_i] and r.seq >= p_floor_seqs[v_i]
            and fenceline.runs_kind(p_kinds, r.kind) and coalesce(r.runner <@ p_claimer, true) and (r.deaths is null) <> p_alone
            and (r.uses & 512 /* refused */ is distinct from 512 or not fenceline.is_refused_by(r.job_id, p_claimer))
            and (r.uses & 1 /* dedupe */ is distinct from 1 or fenceline.lock_dedupe_key(r.job_id, p_lane))
          order by r.lane, r.priority desc, r.seq limit v_left for update skip locked) p;
    rows := rows || v_rows;
    uses := uses | v_uses;
    v_left := p_limit - cardinality(rows);
    v_high := p_floor_priorities[v_i] - 1;
    exit when v_left = 0;
  end loop;
  if v_left > 0 then
    select coalesce(array_agg(p.ctid), '{}'), coalesce(bit_or(p.uses), 0) into v_rows, v_uses
    from (select r.ctid, r.uses from fenceline.ready r
          where r.lane = p_lane and r.priority <= v_high
            and fenceline.runs_kind(p_kinds, r.kind) and coalesce(r.runner <@ p_claimer, true) and (r.deaths is null) <> p_alone
            and (r.uses & 512 /* refused */ is distinct from 512 or not fenceline.is_refused_by(r.job_id, p_claimer))
            and (r.uses & 1 /* dedupe */ is distinct from 1 or fenceline.lock_dedupe_key(r.job_id, p_lane))
          order by r.lane, r.priority desc, r.seq limit v_left for update skip locked) p;
    rows := rows || v_rows;
    uses := uses | v_uses;
  end if;
end;
$$;

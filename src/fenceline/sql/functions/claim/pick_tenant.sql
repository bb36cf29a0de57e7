-- Like pick_ready, for a runner that is bound to a tenant: that tenant's jobs, in the lane's order.
--
-- In a fair lane they are found by ready_fair, however many jobs others have there; in any other lane the scan walks over
-- the jobs of other tenants that come first. So it does in a fair lane when nothing is found: a job whose enqueue was open
-- while the lane became fair is marked as such some time later (rank_late_jobs). The round robin of a fair lane does not count these claims.
-- Plans: always in the order of an index. Without statistics two equalities look so selective that sorting seems cheap.
-- roles: none
create or replace function fenceline.pick_tenant(
  p_lane text,
  p_tenant text,
  p_kinds text[],
  p_limit integer,
  p_alone boolean,
  p_fair boolean,
  p_claimer jsonb,
  out rows tid[],
  out uses integer
)
language plpgsql set enable_sort = off set enable_bitmapscan = off set jit = off as $$
begin
  rows := '{}';
  uses := 0;
  if p_fair then
    select coalesce(array_agg(p.ctid), '{}'), coalesce(bit_or(p.uses), 0) into rows, uses
    from (select r.ctid, r.uses from fenceline.ready r
          where r.fair and r.lane = p_lane and r.tenant = p_tenant
            and fenceline.runs_kind(p_kinds, r.kind) and coalesce(r.runner <@ p_claimer, true) and (r.deaths is null) <> p_alone
            and (r.uses & 512 /* refused */ is distinct from 512 or not fenceline.is_refused_by(r.job_id, p_claimer))
            and (r.uses & 1 /* dedupe */ is distinct from 1 or fenceline.lock_dedupe_key(r.job_id, p_lane))
          order by r.lane, r.tenant, r.priority desc, r.seq limit p_limit for update skip locked) p;
  end if;
  if cardinality(rows) = 0 then
    select coalesce(array_agg(p.ctid), '{}'), coalesce(bit_or(p.uses), 0) into rows, uses
    from (select r.ctid, r.uses from fenceline.ready r
          where r.lane = p_lane and r.tenant = p_tenant
            and fenceline.runs_kind(p_kinds, r.kind) and coalesce(r.runner <@ p_claimer, true) and (r.deaths is null) <> p_alone
            and (r.uses & 512 /* refused */ is distinct from 512 or not fenceline.is_refused_by(r.job_id, p_claimer))
            and (r.uses & 1 /* dedupe */ is distinct from 1 or fenceline.lock_dedupe_key(r.job_id, p_lane))
          order by r.lane, r.priority desc, r.seq limit p_limit for update skip locked) p;
  end if;
end;
$$;

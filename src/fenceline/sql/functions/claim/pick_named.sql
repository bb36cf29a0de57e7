-- Like pick_ready, for jobs that a message has named (claim_named_jobs): those of them that are claimable, in the lane's order.
-- p_tenant null: everybody's.
-- roles: none
create or replace function fenceline.pick_named(
  p_lane text,
  p_tenant text,
  p_kinds text[],
  p_limit integer,
  p_claimer jsonb,
  p_job_ids bigint[],
  out rows tid[],
  out uses integer
)
language plpgsql as $$
begin
  select coalesce(array_agg(p.ctid), '{}'), coalesce(bit_or(p.uses), 0) into rows, uses
  from (select r.ctid, r.uses from fenceline.ready r
        where r.job_id = any(p_job_ids) and r.lane = p_lane and (p_tenant is null or r.tenant = p_tenant)
          and fenceline.runs_kind(p_kinds, r.kind) and coalesce(r.runner <@ p_claimer, true) and r.deaths is null
          and (r.uses & 512 /* refused */ is distinct from 512 or not fenceline.is_refused_by(r.job_id, p_claimer))
          and (r.uses & 1 /* dedupe */ is distinct from 1 or fenceline.lock_dedupe_key(r.job_id, p_lane))
        order by r.priority desc, r.seq limit p_limit for update skip locked) p;
end;
$$;

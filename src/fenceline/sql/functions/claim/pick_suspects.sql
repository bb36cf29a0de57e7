-- Like pick_ready, for suspects: jobs that shared a process with a crash and run alone. p_tenant null: everybody's.
--
-- However many other jobs wait in the lane, only suspects are looked at (ready_alone).
-- Plans: the condition of that index is spelled out, and nothing is sorted.
-- roles: none
create or replace function fenceline.pick_suspects(
  p_lane text,
  p_tenant text,
  p_kinds text[],
  p_limit integer,
  p_claimer jsonb,
  out rows tid[],
  out uses integer
)
language plpgsql set enable_sort = off set enable_bitmapscan = off set jit = off as $$
begin
  select coalesce(array_agg(p.ctid), '{}'), coalesce(bit_or(p.uses), 0) into rows, uses
  from (select r.ctid, r.uses from fenceline.ready r
        where r.deaths is not null and r.lane = p_lane and (p_tenant is null or r.tenant = p_tenant)
          and fenceline.runs_kind(p_kinds, r.kind) and coalesce(r.runner <@ p_claimer, true)
          and (r.uses & 512 /* refused */ is distinct from 512 or not fenceline.is_refused_by(r.job_id, p_claimer))
          and (r.uses & 1 /* dedupe */ is distinct from 1 or fenceline.lock_dedupe_key(r.job_id, p_lane))
        order by r.lane, r.priority desc, r.seq limit p_limit for update skip locked) p;
end;
$$;

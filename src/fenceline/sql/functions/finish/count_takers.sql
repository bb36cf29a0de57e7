-- How many live workers may take a job that some have refused: those that serve its lane, know its kind, are the ones that it
-- is meant for, and whose handler neither is among those who refused it nor would, by the names of the args. A worker that has
-- not said what its handlers take may take anything.
--
-- p_refused   signatures; null: none, which counts all who know the kind
-- roles: none
create or replace function fenceline.count_takers(p_job fenceline.job, p_lane text, p_refused text[]) returns bigint
language sql stable as $$
  select count(*) from fenceline.worker w
  where w.stopped_at is null and w.lease_until > fenceline.clock()
    and (w.lanes is null or p_lane = any(w.lanes)) and (w.tenant is null or w.tenant = p_job.tenant)
    and fenceline.runs_kind(case when w.runner then fenceline.runner_kinds(w.kinds) else w.kinds end, p_job.kind)
    and coalesce(fenceline.address_of(p_job.runner) <@ fenceline.claimer(w.id), true)
    and (p_refused is null or not exists (
      select 1 from jsonb_each(w.signatures) s
      where split_part(s.key, ' ', 1) = p_job.kind
        and (s.key = any(p_refused) or not fenceline.takes_args(s.value, p_job.args::jsonb))));
$$;

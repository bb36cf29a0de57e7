-- Lets those of the jobs go on that are held for a signal and have news (has_news). The handler takes the signal itself, under
-- its fence. A job that somebody is changing is left as it is. Returns how many.
-- Lock order: held rows, skipping locked ones.
-- roles: none
create or replace function fenceline.resume_signalled(p_job_ids bigint[]) returns integer
language plpgsql as $$
declare
  v_jobs fenceline.live[];
begin
  select array_agg(n.live order by n.job_id) into v_jobs from (
    select h.job_id, row(h.job_id, h.seq, h.priority, h.lane, h.kind, h.tenant, h.number, h.token, h.deaths, h.uses,
                         h.run_at)::fenceline.live as live
    from fenceline.held h join fenceline.wait w on w.job_id = h.job_id
    where h.job_id = any(p_job_ids) and h.waiting_for = 'signal' and fenceline.has_news(w)
    for update of h skip locked) n;
  if v_jobs is null then
    return 0;
  end if;
  update fenceline.wait w set due_at = null where w.job_id = any(array(select j.job_id from unnest(v_jobs) j));
  perform fenceline.release_held(v_jobs);
  return cardinality(v_jobs);
end;
$$;

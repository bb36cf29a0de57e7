-- Puts jobs into `held`, for approval or for their dependencies.
-- roles: none
create or replace function fenceline.hold_jobs(p_jobs fenceline.live[], p_waiting_for text, p_pending integer)
returns void
language plpgsql as $$
begin
  insert into fenceline.held (job_id, seq, priority, lane, kind, tenant, waiting_for, pending, number, token, deaths,
                              uses, run_at)
  select l.job_id, l.seq, l.priority, l.lane, l.kind, l.tenant, p_waiting_for, p_pending, l.number, l.token, l.deaths,
         l.uses, l.run_at
  from unnest(p_jobs) l;
  if exists (select 1 from fenceline.follow) then
    perform fenceline.tell_followers(array(select l.job_id from unnest(p_jobs) l));
  end if;
end;
$$;

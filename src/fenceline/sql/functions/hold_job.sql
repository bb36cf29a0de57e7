-- Puts a job into `held`, for approval or for its dependencies.
-- roles: none
create or replace function fenceline.hold_job(p_live fenceline.live, p_waiting_for text, p_pending integer)
returns void
language plpgsql as $$
begin
  insert into fenceline.held (job_id, seq, priority, lane, kind, tenant, waiting_for, pending, number, token, deaths,
                              uses, run_at)
  values (p_live.job_id, p_live.seq, p_live.priority, p_live.lane, p_live.kind, p_live.tenant, p_waiting_for, p_pending,
          p_live.number, p_live.token, p_live.deaths, p_live.uses, p_live.run_at);
  if exists (select 1 from fenceline.follow) then
    perform fenceline.tell_followers(array[p_live.job_id]);
  end if;
end;
$$;

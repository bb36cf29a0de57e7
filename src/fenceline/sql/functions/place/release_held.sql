-- Takes jobs out of `held` whose gates of approval and dependencies are met, and places them by the rest.
-- They become claimable now, so they get a seq of now.
-- roles: none
create or replace function fenceline.release_held(p_jobs fenceline.live[]) returns void
language plpgsql as $$
begin
  delete from fenceline.held where job_id = any(array(select l.job_id from unnest(p_jobs) l));
  perform fenceline.place_jobs(array(
    select row(l.job_id, fenceline.next_id(), l.priority, l.lane, l.kind, l.tenant, l.number, l.token, l.deaths, l.uses,
               l.run_at)::fenceline.live
    from unnest(p_jobs) l));
end;
$$;

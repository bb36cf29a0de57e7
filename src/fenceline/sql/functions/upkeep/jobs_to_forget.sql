-- Up to p_limit finished jobs whose retention (per kind and status) is over, to be handed to forget_finished in small
-- portions. Finding them may mean to read past many that are kept, so one look finds many.
-- roles: worker
create or replace function fenceline.jobs_to_forget(p_limit integer default 20000) returns bigint[]
language sql stable security definer set search_path = pg_catalog, pg_temp set jit = off as $$
  select array(select f.job_id from fenceline.find_past_retention(fenceline.clock(), p_limit) f);
$$;

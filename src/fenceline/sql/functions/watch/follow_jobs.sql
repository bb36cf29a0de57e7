-- Asks for a notification (`fenceline_changed`) whenever something about these jobs changes, for so many seconds. 0 stands
-- for every job: what happens goes to the journal, without notifications.
-- Returns this transaction's number: changes by transactions that were open before it may go unannounced (is_settled tells
-- when those are over).
-- roles: admin
create or replace function fenceline.follow_jobs(p_job_ids bigint[], p_seconds double precision default 60)
returns text
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  if 0 = any(p_job_ids)
     and not exists (select 1 from fenceline.follow f where f.job_id = 0 and f.until > fenceline.clock()) then
    -- It was off: what it has is not continued by what comes. The place that is left out says so to who comes back.
    delete from fenceline.journal;
    perform nextval('fenceline.journal_position');
  end if;
  insert into fenceline.follow (job_id, until)
  select distinct i, fenceline.clock() + make_interval(secs => p_seconds) from unnest(p_job_ids) i order by i
  on conflict (job_id) do update set until = greatest(follow.until, excluded.until);
  return pg_current_xact_id()::text;
end;
$$;

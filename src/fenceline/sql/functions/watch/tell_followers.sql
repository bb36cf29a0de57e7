-- Tells those who watch live that something about these jobs has changed: a notification (`fenceline_changed`, ids joined by
-- commas) for jobs that a server follows, rows in the journal while somebody follows everything.
-- Callers on the hot path ask `exists (select 1 from fenceline.follow)` first: an unwatched job costs that probe of an
-- empty table. A change may be committed before the follower is visible to whoever makes it: servers look again.
--
-- p_token, p_first_line, p_last_line   log lines were written; else the job's state has changed
-- roles: none
create or replace function fenceline.tell_followers(
  p_job_ids bigint[],
  p_token bigint default null,
  p_first_line integer default null,
  p_last_line integer default null
) returns void
language plpgsql set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off as $$
declare
  v_now timestamptz := fenceline.clock();
  v_followed bigint[];
begin
  v_followed := array(
    select f.job_id from fenceline.follow f where f.job_id = any(0 || p_job_ids) and f.until > v_now order by f.job_id);
  if v_followed[1] = 0 then
    insert into fenceline.journal (job_id, at, token, first_line, last_line)
    select i, v_now, p_token, p_first_line, p_last_line from unnest(p_job_ids) i;
    v_followed := v_followed[2:];
  end if;
  if cardinality(v_followed) > 0 then
    -- As in tell_watchers: 300 ids fit into a payload.
    perform pg_notify('fenceline_changed', string_agg(c.id::text, ','))
    from unnest(v_followed) with ordinality c(id, n)
    group by (c.n - 1) / 300;
  end if;
end;
$$;

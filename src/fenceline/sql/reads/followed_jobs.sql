-- What a live view of jobs shows, for many at once: the job as in the view `jobs`, log lines after a token and line (at
-- most p_limit), and versions that tell whether the state or the progress is another than before. `job` is null for a job
-- that is gone. All of one snapshot: with a final status come the last lines.
-- `stamp` is that of followed_stamps.
-- roles: admin
create or replace function fenceline.followed_jobs(
  p_job_ids bigint[],
  p_tokens bigint[],
  p_lines integer[],
  p_limit integer default 500
) returns table (job_id bigint, stamp bigint, job jsonb, status text, progress jsonb, status_version bigint,
                 progress_version bigint, lines jsonb[])
language sql stable security definer set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off as $$
  select g.id, s.stamp, v.job, v.job ->> 'status', p.progress,
         coalesce(hashtextextended((v.job - array['phase', 'progress'])::text, 0), 0),
         -- 0: nothing was reported yet
         case when p.progress - 'id' - 'attempt' = '{"phase": null, "progress": null}' then 0
              else coalesce(hashtextextended(p.progress::text, 0), 0) end,
         array(select to_jsonb(l) from fenceline.read_log(g.id, g.token, g.line, p_limit) l)
  from unnest(p_job_ids, p_tokens, p_lines) g(id, token, line)
  left join lateral (select fenceline.describe_job(g.id) as job) v on true
  left join lateral (select jsonb_build_object(
    'id', v.job -> 'id', 'attempt', v.job -> 'attempt', 'phase', v.job -> 'phase',
    'progress', v.job -> 'progress') as progress) p on v.job is not null
  left join fenceline.followed_stamps(p_job_ids) s on s.job_id = g.id;
$$;

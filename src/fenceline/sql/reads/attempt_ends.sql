-- What became of attempts that have ended: whether that was the job's end, and else in how many seconds it runs again.
-- Whoever ran them says so in a log. An attempt that has not ended, or is forgotten, has no row.
-- roles: worker
create or replace function fenceline.attempt_ends(p_job_ids bigint[], p_attempt_ids uuid[])
returns table (attempt_id uuid, is_final boolean, asked text, next_seconds double precision)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select h.attempt_id, h.final, coalesce(h.asked, h.outcome),
         case when not h.final then greatest(extract(epoch from coalesce((
           select t.run_at from fenceline.timer t where t.job_id = g.job_id), fenceline.clock()) - fenceline.clock()), 0)
         end::double precision
  from unnest(p_job_ids, p_attempt_ids) g(job_id, attempt_id)
  cross join lateral fenceline.ended_attempt(g.job_id, g.attempt_id) h;
$$;

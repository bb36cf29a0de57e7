-- The log lines that rows of the journal speak of, in order; `n` is the row's place in the lists.
-- roles: admin
create or replace function fenceline.journal_lines(p_job_ids bigint[], p_tokens bigint[], p_first integer[], p_last integer[])
returns table (n bigint, line jsonb)
language sql stable security definer set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off as $$
  select g.n, to_jsonb(l) - 'job_id'
  from unnest(p_job_ids, p_tokens, p_first, p_last) with ordinality g(job_id, token, first_line, last_line, n)
  join fenceline.log l on l.job_id = g.job_id and l.token = g.token and l.line between g.first_line and g.last_line
  order by g.n, l.line;
$$;

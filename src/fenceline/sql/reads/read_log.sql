-- Log lines of a job in order, after a given token and line; the token tells the attempt.
-- roles: producer, worker, reader
create or replace function fenceline.read_log(
  p_job_id bigint,
  p_after_token bigint default 0,
  p_after_line integer default 0,
  p_limit integer default 1000
) returns table (token bigint, line integer, at timestamptz, level text, message text, fields jsonb)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select l.token, l.line, l.at, l.level, l.message, l.fields from fenceline.log l
  where l.job_id = p_job_id and (l.token, l.line) > (p_after_token, p_after_line)
  order by l.token, l.line limit p_limit;
$$;

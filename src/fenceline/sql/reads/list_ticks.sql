-- What became of a schedule's ticks, newest first.
-- roles: producer, worker, reader
create or replace function fenceline.list_ticks(p_name text, p_limit integer default 50) returns table (
  tick_at timestamptz, outcome text, decided_at timestamptz, from_at timestamptz, job text, error text
)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select t.tick_at, t.outcome, t.decided_at, t.from_at, fenceline.public_id(t.job_id), t.error
  from fenceline.schedule_tick t where t.schedule = p_name order by t.tick_at desc limit p_limit;
$$;

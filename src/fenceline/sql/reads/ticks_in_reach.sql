-- list_ticks of the schedule that somebody bound to p_tenant (null: to none) calls p_name. Ticks from before it was made are
-- not his: another tenant may have had the name.
-- roles: producer, worker, reader
create or replace function fenceline.ticks_in_reach(p_tenant text, p_name text, p_limit integer default 50) returns table (
  tick_at timestamptz, outcome text, decided_at timestamptz, from_at timestamptz, job text, error text
)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select t.tick_at, t.outcome, t.decided_at, t.from_at, t.job, t.error
  from fenceline.schedule s cross join lateral fenceline.list_ticks(s.name, p_limit) t
  where s.name = (select fenceline.find_schedule(p_name, p_tenant)) and (p_tenant is null or t.decided_at >= s.created_at)
  order by t.tick_at desc;
$$;

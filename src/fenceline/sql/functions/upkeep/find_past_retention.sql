-- Finished jobs whose retention was over at p_at, at most p_limit, and when it was. Not those that will be dropped with
-- their day within two days, and have the longest retention anyway: they wait for that, which costs next to nothing.
-- The index on ended_at finds the candidates; the predicate per kind and status decides.
-- roles: none
create or replace function fenceline.find_past_retention(p_at timestamptz, p_limit integer)
returns table (job_id bigint, over_at timestamptz)
language plpgsql stable as $$
declare
  v_kept record := fenceline.retention_bounds();
  v_day date := ((p_at - v_kept.longest) at time zone 'UTC')::date;  -- of the jobs whose longest retention ends now
  v_from bigint;
  v_to bigint;
begin
  -- A short retention is meant to the minute.
  if v_kept.longest >= interval '3 days' then
    v_from := fenceline.id_at((v_day - 1)::timestamp at time zone 'UTC');
    v_to := fenceline.id_at((v_day + 1)::timestamp at time zone 'UTC');
  end if;
  return query
  select h.job_id, h.ended_at + r.retention
  from fenceline.history h
  join fenceline.job j on j.id = h.job_id
  cross join lateral fenceline.retention_of(j.kind, h.outcome) r (retention)
  where h.final and h.ended_at < p_at - v_kept.shortest and h.ended_at < p_at - r.retention
    and (v_from is null or h.job_id < v_from or h.job_id >= v_to or r.retention < v_kept.longest
         or h.tableoid = 'fenceline.history_default'::regclass)
  limit p_limit;
end;
$$;

-- Jobs that have waited for approval for p_seconds already: how many, the first of them, and since when.
-- roles: reader
create or replace function fenceline.late_approvals(p_seconds double precision) returns table (
  tenant text, kind text, jobs bigint, since timestamptz, example text
)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select h.tenant, h.kind, count(*), fenceline.id_time(min(h.job_id)), fenceline.public_id(min(h.job_id))
  from (select h.tenant, h.kind, h.job_id from fenceline.held h
        where h.waiting_for = 'approval' and h.job_id < fenceline.id_at(fenceline.clock() - make_interval(secs => p_seconds))
        order by h.job_id limit 10000) h
  group by h.tenant, h.kind order by 4;
$$;

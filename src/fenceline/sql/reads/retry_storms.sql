-- Kinds with many jobs that wait for their retry: a hundred at least, and more than a fifth of what ended within p_seconds
-- (a minute at least). `error` is the last one of the first of them.
-- roles: reader
create or replace function fenceline.retry_storms(p_seconds double precision) returns table (
  kind text, jobs bigint, ended bigint, example text, error text
)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  with waiting as (
    select t.kind, count(*) as jobs, min(t.job_id) as first
    from (select t.kind, t.job_id from fenceline.timer t where t.number > 0 limit 100000) t
    group by t.kind having count(*) >= 100
  ), ended as (
    select e.kind, count(*) as jobs from fenceline.ended_jobs(greatest(p_seconds, 60), 100000) e
    where exists (select 1 from waiting) group by e.kind
  )
  select w.kind, w.jobs, coalesce(e.jobs, 0), fenceline.public_id(w.first),
         (select fenceline.say_error(h.error) from fenceline.history h
          where h.job_id = w.first and not h.final order by h.token desc limit 1)
  from waiting w left join ended e on e.kind = w.kind
  where w.jobs * 5 > coalesce(e.jobs, 0)
  order by w.jobs desc;
$$;

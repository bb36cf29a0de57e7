-- Kinds of which many fail now and did not before: of what ended within the last hour a fifth at least, of twenty jobs or more,
-- and twice the share of the week before that. Looks at 200,000 ends at most. `error` is the one of the last that failed.
-- roles: reader
create or replace function fenceline.failing_kinds() returns table (
  kind text, ended bigint, failed bigint, failed_before double precision, since timestamptz, example text, error text
)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  with recent as (
    select e.kind, count(*) as ended, count(*) filter (where e.outcome = 'failed') as failed,
           min(e.ended_at) filter (where e.outcome = 'failed') as since,
           max(e.job_id) filter (where e.outcome = 'failed') as last
    from fenceline.ended_jobs(3600, 200000) e group by e.kind
    having count(*) >= 20 and count(*) filter (where e.outcome = 'failed') * 5 >= count(*)
  ), before as (
    select e.kind, (count(*) filter (where e.outcome = 'failed'))::double precision / count(*) as share
    from fenceline.ended_jobs(604800, 200000) e
    where exists (select 1 from recent) and e.ended_at <= fenceline.clock() - interval '1 hour' group by e.kind
  )
  select r.kind, r.ended, r.failed, b.share, r.since, fenceline.public_id(r.last),
         (select fenceline.say_error(h.error) from fenceline.history h where h.job_id = r.last and h.final)
  from recent r left join before b on b.kind = r.kind
  where b.share is null or r.failed::double precision / r.ended >= 2 * b.share
  order by r.failed desc;
$$;

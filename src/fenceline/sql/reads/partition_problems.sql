-- What is wrong with the daily partitions of `job` and `history`:
--   missing    no partition for today or one of the next two days: new jobs go to the default one, where retention deletes row by row
--   unpaired   one of the two tables has a partition for the day, the other has not
--   detached   a table that looks like a partition and is none: its jobs are not seen
--   overdue    older by 4 days than the longest retention, and still there
-- roles: reader
create or replace function fenceline.partition_problems() returns table (problem text, name text)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  with tables as (
    select c.relname::text as name, split_part(c.relname, '_', 1) as parent, to_date(right(c.relname, 8), 'YYYYMMDD') as day,
           exists (select 1 from pg_inherits i where i.inhrelid = c.oid) as attached
    from pg_class c
    where c.relnamespace = 'fenceline'::regnamespace and c.relkind = 'r' and c.relname ~ '^(job|history)_\d{8}$'
  ), now as (
    select (fenceline.clock() at time zone 'UTC')::date as today
  )
  select 'missing', 'job_' || to_char(n.today + i, 'YYYYMMDD')
  from now n cross join generate_series(0, 2) i
  where not exists (select 1 from tables t where t.attached and t.parent = 'job' and t.day = n.today + i)
  union all
  select 'unpaired', t.name from tables t
  where t.attached and not exists (select 1 from tables o where o.attached and o.day = t.day and o.parent <> t.parent)
  union all
  select 'detached', t.name from tables t where not t.attached
  union all
  select 'overdue', t.name from tables t cross join now n
  where t.attached and t.parent = 'job'
    and t.day < n.today - 4 - (select ceil(max(r.seconds) / 86400)::integer from fenceline.retention() r);
$$;

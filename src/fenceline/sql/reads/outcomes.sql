-- How jobs ended: a row for each of the given ones that has. One statement serves any number of waiting clients.
-- A job that does not exist (any more) has a row with status null.
-- roles: producer, worker, reader
create or replace function fenceline.outcomes(p_job_ids bigint[])
returns table (job_id bigint, status text, result jsonb, error jsonb, errors jsonb)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select i, h.outcome, h.result, h.error, h.errors
  from unnest(p_job_ids) i
  left join fenceline.history h on h.job_id = i and h.final
  where h.job_id is not null or not exists (select 1 from fenceline.job j where j.id = i);
$$;

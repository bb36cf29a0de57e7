-- Ids as people see them; null for none.
-- roles: producer, worker, reader
create or replace function fenceline.public_ids(p_job_ids bigint[]) returns text[]
language sql immutable as $$
  select case when p_job_ids is not null
              then array(select fenceline.public_id(i) from unnest(p_job_ids) with ordinality u(i, n) order by n) end;
$$;

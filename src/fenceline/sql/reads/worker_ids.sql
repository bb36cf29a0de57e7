-- The workers and runners of a name, the newest hundred: one that starts again is another worker.
-- roles: none
create or replace function fenceline.worker_ids(p_name text) returns integer[]
language sql stable as $$
  select array(select w.id from fenceline.worker w where w.name = p_name order by w.id desc limit 100);
$$;

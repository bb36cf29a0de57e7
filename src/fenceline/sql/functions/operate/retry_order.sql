-- The order in which to retry jobs together: none before a job of the list that its retry waits for, otherwise the oldest first.
-- In rounds: those that wait for none of the others, then those that waited for them only, and so on.
-- roles: admin
create or replace function fenceline.retry_order(p_job_ids bigint[]) returns bigint[]
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_left bigint[] := array(select distinct i from unnest(p_job_ids) i where i is not null order by i);
  v_order bigint[] := '{}';
  v_waiters bigint[];  -- waiter n waits for awaited n
  v_awaited bigint[];
  v_next bigint[];
begin
  select array_agg(j.id), array_agg(n.id) into v_waiters, v_awaited
  from fenceline.job j cross join lateral unnest(j.after) a cross join lateral fenceline.newest_retry(a) n(id)
  where j.id = any(v_left) and n.id in (select unnest(v_left));  -- hashed, however many they are
  while cardinality(v_left) > 0 and v_waiters is not null loop
    v_next := array(
      select i from unnest(v_left) i except
      select e.waiter from unnest(v_waiters, v_awaited) e(waiter, awaited) join unnest(v_left) l on l = e.awaited
      order by 1);
    exit when cardinality(v_next) = 0;  -- they wait in a circle, which no enqueue makes
    v_order := v_order || v_next;
    v_left := array(select i from unnest(v_left) i except select i from unnest(v_next) i order by 1);
  end loop;
  return v_order || v_left;
end;
$$;

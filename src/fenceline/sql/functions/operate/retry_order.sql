-- The order in which to retry jobs together: oldest first, but none before a job of the list that its retry waits for.
-- roles: none
create or replace function fenceline.retry_order(p_job_ids bigint[]) returns bigint[]
language plpgsql stable as $$
declare
  v_left bigint[] := array(select distinct i from unnest(p_job_ids) i where i is not null order by i);
  v_order bigint[] := '{}';
  v_waiters bigint[];  -- waiter n waits for awaited n
  v_awaited bigint[];
  v_job_id bigint;
  v_before integer;
begin
  select array_agg(j.id), array_agg(n.id) into v_waiters, v_awaited
  from fenceline.job j cross join lateral unnest(j.after) a cross join lateral fenceline.newest_retry(a) n(id)
  where j.id = any(v_left) and n.id = any(v_left);
  while cardinality(v_left) > 0 and v_waiters is not null loop
    v_before := cardinality(v_left);
    foreach v_job_id in array v_left loop
      if not exists (select 1 from unnest(v_waiters, v_awaited) e(waiter, awaited)
                     where e.waiter = v_job_id and e.awaited = any(v_left)) then
        v_order := v_order || v_job_id;
        v_left := array_remove(v_left, v_job_id);
      end if;
    end loop;
    exit when cardinality(v_left) = v_before;  -- they wait in a circle, which no enqueue makes
  end loop;
  return v_order || v_left;
end;
$$;

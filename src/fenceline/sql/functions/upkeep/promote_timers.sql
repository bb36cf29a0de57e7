-- Moves due timers on to their next gate. They become claimable now, so they get a seq of now. Returns how many.
-- roles: worker
create or replace function fenceline.promote_timers(p_limit integer default 1000) returns integer
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_now timestamptz := fenceline.clock();
  v_due fenceline.live[];
begin
  with due as (
    delete from fenceline.timer t where t.job_id = any(array(
      select d.job_id from fenceline.timer d where d.run_at <= v_now
      order by d.run_at, d.job_id limit p_limit for update skip locked))
    returning t.*
  )
  select array_agg(row(d.job_id, fenceline.next_id(), d.priority, d.lane, d.kind, d.tenant, d.number, d.token, d.deaths,
                       d.uses, d.run_at)::fenceline.live order by d.run_at, d.job_id)
    into v_due
  from (select * from due order by run_at, job_id) d;
  if v_due is not null then
    perform fenceline.place_jobs(v_due);
  end if;
  return coalesce(cardinality(v_due), 0);
end;
$$;

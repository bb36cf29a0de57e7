-- Ends jobs that were not started by their expires_at, wherever they wait. Returns how many. A job that somebody is
-- changing (an open reprioritise, say) is left for the next time.
-- roles: worker
create or replace function fenceline.expire_jobs(p_limit integer default 1000) returns integer
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_now timestamptz := fenceline.clock();
  v_due record;
  v_count integer := 0;
begin
  for v_due in
    select d.job_id, d.expires_at from fenceline.deadline d where d.expires_at <= v_now
    order by d.expires_at limit p_limit for update skip locked
  loop
    if exists (select 1 from fenceline.ready r where r.job_id = v_due.job_id and r.uses & 16 /* expires */ <> 0
               union all select 1 from fenceline.timer t where t.job_id = v_due.job_id and t.uses & 16 /* expires */ <> 0
               union all select 1 from fenceline.held h where h.job_id = v_due.job_id and h.uses & 16 /* expires */ <> 0) then
      continue when not fenceline.lock_waiting(v_due.job_id);
      v_count := v_count + cardinality(fenceline.end_waiting(
        array[v_due.job_id], 'cancelled', fenceline.expired_error(v_due.expires_at), null));
    elsif not exists (select 1 from fenceline.running r where r.job_id = v_due.job_id and r.started_at is null) then
      delete from fenceline.deadline d where d.job_id = v_due.job_id;  -- it has started, or is over
    end if;
  end loop;
  return v_count;
end;
$$;

-- Ends jobs that were not started by their expires_at, wherever they wait. Returns how many. A job that somebody is
-- changing (an open reprioritise, say) is left for the next time; where a look ends at p_limit, what it left goes to the
-- end of the line, so that the others have their turn. deadline.expires_at is therefore when to look, not what was said.
-- roles: worker
create or replace function fenceline.expire_jobs(p_limit integer default 1000) returns integer
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_now timestamptz := fenceline.clock();
  v_due record;
  v_looked bigint[] := '{}';
  v_count integer := 0;
begin
  for v_due in
    select d.job_id from fenceline.deadline d where d.expires_at <= v_now
    order by d.expires_at limit p_limit for update skip locked
  loop
    v_looked := v_looked || v_due.job_id;
    if exists (select 1 from fenceline.ready r where r.job_id = v_due.job_id and r.uses & 16 /* expires */ <> 0
               union all select 1 from fenceline.timer t where t.job_id = v_due.job_id and t.uses & 16 /* expires */ <> 0
               union all select 1 from fenceline.held h where h.job_id = v_due.job_id and h.uses & 16 /* expires */ <> 0) then
      continue when not fenceline.lock_waiting(v_due.job_id);
      v_count := v_count + cardinality(fenceline.end_waiting(
        array[v_due.job_id], 'cancelled', fenceline.expired_error((
          select j.expires_at from fenceline.job j where j.id = v_due.job_id)), null));
    elsif not exists (select 1 from fenceline.running r where r.job_id = v_due.job_id and r.started_at is null) then
      delete from fenceline.deadline d where d.job_id = v_due.job_id;  -- it has started, or is over
    end if;
  end loop;
  if cardinality(v_looked) = p_limit then
    update fenceline.deadline d set expires_at = v_now where d.job_id = any(v_looked);
  end if;
  return v_count;
end;
$$;

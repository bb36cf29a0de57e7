-- The newest of these jobs that has their dedupe key now: it waits, for its first run or another one; or it runs, and has the
-- key until it has finished. One whose handler waits has begun, as if it ran. Null: none. Where the caller holds a lock on the key, none of them is claimed meanwhile.
--
-- In READ COMMITTED this statement sees what is. A stricter snapshot may be older than a claim, so there the job's row is
-- locked for a moment, which fails (40001) when the row has moved since.
-- roles: none
create or replace function fenceline.dedupe_holder(p_job_ids bigint[]) returns bigint
language plpgsql as $$
declare
  v_holder bigint;
begin
  -- A job that neither runs nor has ended waits; it may be of this very call, and not in its place yet.
  select j.id into v_holder from fenceline.job j
  where j.id = any(p_job_ids)
    and (j.dedupe_until = 'finished' or not exists (
           select 1 from fenceline.running r where r.job_id = j.id
           union all select 1 from fenceline.wait w where w.job_id = j.id))
    and not exists (select 1 from fenceline.history h where h.job_id = j.id and h.final)
  order by j.id desc limit 1;
  if v_holder is not null and current_setting('transaction_isolation') <> 'read committed' then
    begin
      perform 1 from fenceline.ready where job_id = v_holder for key share;
      perform 1 from fenceline.timer where job_id = v_holder for key share;
      perform 1 from fenceline.held where job_id = v_holder for key share;
      perform 1 from fenceline.running where job_id = v_holder for key share;
      raise exception using errcode = 'FLNOW', message = 'the row is where it was: give its lock back';
    exception when sqlstate 'FLNOW' then null;
    end;
  end if;
  return v_holder;
end;
$$;

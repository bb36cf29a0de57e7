-- The job that has a dedupe key: p_job_id if nobody does (then it has it now), else that one.
--
-- A row of `dedupe` names the newest job with the key, and earlier ones that have not ended. Whether one of them has the key
-- is not written anywhere: where they are says it (dedupe_holder). So neither a claim nor the way back to the queue changes
-- the row.
--
-- Whoever is answered with a job may write more before the commit, and counts on a run that sees it. So the answer locks
-- the row until the end of the transaction, and a claim passes over jobs whose row is locked (lock_dedupe_key). The lock
-- holds up nobody but those claims: jobs move, end and take the key over beside it.
-- p_guard     false: without that lock, and so without a write, for an enqueue that is a transaction of its own: all that its
--             caller wrote was committed before, and a job that has not been claimed by now will see it
-- roles: none
create or replace function fenceline.take_dedupe_key(p_tenant text, p_key text, p_job_id bigint,
                                                     p_guard boolean) returns bigint
language plpgsql as $$
declare
  v_row record;
  v_holder bigint;
begin
  loop
    insert into fenceline.dedupe (tenant, key, job_id) values (p_tenant, p_key, p_job_id)
    on conflict (tenant, key) do nothing;
    if found then
      return p_job_id;
    end if;
    if p_guard then  -- waits for a claim in flight, which has locked the row
      select d.job_id, d.earlier into v_row from fenceline.dedupe d
      where d.tenant = p_tenant and d.key = p_key for key share;
    else
      select d.job_id, d.earlier into v_row from fenceline.dedupe d where d.tenant = p_tenant and d.key = p_key;
    end if;
    continue when not found;  -- its last job has just ended
    -- In a statement, and so a snapshot, of its own.
    v_holder := fenceline.dedupe_holder(v_row.job_id || v_row.earlier);
    if v_holder is not null then
      return v_holder;
    end if;
    update fenceline.dedupe d
    set job_id = p_job_id, earlier = nullif(array(
      select i from unnest(v_row.job_id || v_row.earlier) i where fenceline.is_live(i) order by 1), '{}')
    where d.tenant = p_tenant and d.key = p_key and d.job_id = v_row.job_id;
    if found then
      return p_job_id;
    end if;  -- else a rival was quicker
  end loop;
end;
$$;

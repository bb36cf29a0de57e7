-- Takes ended jobs out of the rows of their dedupe keys. A key that another job has taken over stays with that one; one that
-- an earlier job has not ended with goes back to it.
-- Waits for nobody: where the key is locked (an open transaction was answered with the job, or takes the key) the job is noted,
-- and maintain looks again. Until then nothing is wrong: a job that has ended has no key (dedupe_holder).
-- roles: none
create or replace function fenceline.give_back_dedupe_keys(p_job_ids bigint[], p_tenants text[], p_keys text[])
returns void
language plpgsql as $$
declare
  v_row record;
  v_left bigint[];
  v_seen bigint[] := '{}';
begin
  for v_row in
    select d.ctid, d.job_id || d.earlier as job_ids
    from unnest(p_job_ids, p_tenants, p_keys) e(job_id, tenant, key)
    join fenceline.dedupe d on d.tenant = e.tenant and d.key = e.key and e.job_id = any(d.job_id || d.earlier)
    for update of d skip locked
  loop
    v_seen := v_seen || v_row.job_ids;
    v_left := array(select i from unnest(v_row.job_ids) i where i <> all (p_job_ids) order by i desc);
    if cardinality(v_left) = 0 then
      delete from fenceline.dedupe where ctid = v_row.ctid;
    else
      update fenceline.dedupe set job_id = v_left[1], earlier = nullif(v_left[2:], '{}') where ctid = v_row.ctid;
    end if;
  end loop;
  insert into fenceline.dedupe_check (job_id, tenant, key)
  select e.job_id, e.tenant, e.key
  from unnest(p_job_ids, p_tenants, p_keys) e(job_id, tenant, key)
  join fenceline.dedupe d on d.tenant = e.tenant and d.key = e.key and e.job_id = any(d.job_id || d.earlier)
  where e.job_id <> all (v_seen)
  on conflict do nothing;
end;
$$;

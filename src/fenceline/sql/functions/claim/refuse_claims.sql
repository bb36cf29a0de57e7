-- Ends picked jobs that must not start any more: past expires_at, or their snapshot is not the one that was planned.
-- They are gone from `ready` afterwards, so the claim passes over them.
-- roles: none
create or replace function fenceline.refuse_claims(p_rows tid[], p_now timestamptz) returns void
language plpgsql as $$
declare
  v_job record;
begin
  for v_job in
    select j.id, j.expires_at <= p_now as expired, j.expires_at, j.snapshot_hash, j.requires_hash
    from fenceline.ready r join fenceline.job j on j.id = r.job_id
    where r.ctid = any(p_rows) and r.uses & 48 /* expires + compares hash */ <> 0
      and (j.expires_at <= p_now
           or (j.requires_hash is not null and j.snapshot_hash is distinct from j.requires_hash))
  loop
    if v_job.expired then
      perform fenceline.end_waiting(array[v_job.id], 'cancelled', fenceline.expired_error(v_job.expires_at), null);
    else
      perform fenceline.end_waiting(array[v_job.id], 'failed', jsonb_build_object(
        'code', 'plan_hash_mismatch',
        'message', format('the configuration has changed since it was planned: hash %s was required, this job has %s',
                          v_job.requires_hash, coalesce(v_job.snapshot_hash, 'none'))), null);
    end if;
  end loop;
end;
$$;

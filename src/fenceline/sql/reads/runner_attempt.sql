-- Whether somebody may write for an attempt: the door of every attempt call over HTTP. It does not fence, the operation
-- behind it does: an attempt never changes its runner, but it may end at any moment.
--
-- p_tenant    whose jobs the one who asks may touch; null: everybody's
-- Returns `live` or `ended`. Raises FL010 (the job is missing or foreign), FL012 (it never had such an attempt), FL066 (the
-- attempt is of a worker, or of somebody else's runner).
-- roles: worker
create or replace function fenceline.runner_attempt(p_job_id bigint, p_attempt_id uuid, p_owner text, p_tenant text)
returns text
language plpgsql stable security definer set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off as $$
declare
  v_worker integer;
  v_state text := 'live';
begin
  perform 1 from fenceline.job j where j.id = p_job_id and (p_tenant is null or j.tenant = p_tenant);
  if not found then
    raise exception using errcode = 'FL010',
      message = format('job %s does not exist', coalesce(fenceline.public_id(p_job_id), 'null'));
  end if;
  select r.worker_id into v_worker from fenceline.running r where r.job_id = p_job_id and r.attempt_id = p_attempt_id;
  if not found then
    v_state := 'ended';
    select h.worker_id into v_worker from fenceline.ended_attempt(p_job_id, p_attempt_id) h;
    if not found then
      raise exception using errcode = 'FL012',
        message = format('attempt %s of job %s is gone: nothing was changed', p_attempt_id, fenceline.public_id(p_job_id)),
        hint = 'It was reclaimed, cancelled or finished; whoever holds the job now decides.';
    end if;
  end if;
  perform 1 from fenceline.worker w where w.id = v_worker and w.runner and w.owner = p_owner;
  if not found then
    raise exception using errcode = 'FL066',
      message = format('attempt %s of job %s belongs to a runner of another token', p_attempt_id, fenceline.public_id(p_job_id));
  end if;
  return v_state;
end;
$$;

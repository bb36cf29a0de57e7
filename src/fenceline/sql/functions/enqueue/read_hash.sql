-- The option requires_hash: a snapshot's hash, or {"job": id} for the hash of an earlier job's snapshot.
-- Raises FL007 (not a hash, a job without snapshot), FL008 (the job does not exist), FL017 (not an id).
-- roles: none
create or replace function fenceline.read_hash(p_tenant text, p_options jsonb) returns text
language plpgsql stable as $$
declare
  v_given jsonb := p_options -> 'requires_hash';
  v_job record;
  v_id bigint;
begin
  if jsonb_typeof(v_given) is distinct from 'object' then
    return fenceline.read_text(p_options, 'requires_hash');
  end if;
  if v_given - 'job' <> '{}' or v_given -> 'job' is null then
    raise exception using errcode = 'FL007',
      message = format('requires_hash %s is not valid: use the hash of a snapshot, or {"job": id}', left(v_given::text, 80));
  end if;
  v_id := fenceline.read_job_id(v_given -> 'job');
  select j.snapshot_hash into v_job from fenceline.job j where j.id = v_id and j.tenant = p_tenant;
  if not found then
    raise exception using errcode = 'FL008',
      message = format('job %s, whose hash is required, does not exist', fenceline.public_id(v_id));
  end if;
  if v_job.snapshot_hash is null then
    raise exception using errcode = 'FL007',
      message = format('job %s, whose hash is required, has no snapshot', fenceline.public_id(v_id));
  end if;
  return v_job.snapshot_hash;
end;
$$;

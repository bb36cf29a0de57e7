-- Lets whoever knows a secret send one signal to the job of a live attempt, once and until the time is over: the secret
-- stands in a URL that an outside system is given. Only its hash comes here.
--
-- p_hash      SHA-256 of the secret
-- Returns when it expires. Raises FL012 (stale), FL002 (signal), FL007 (hash, seconds), FL023 (1000 are open).
-- roles: worker
create or replace function fenceline.create_callback(
  p_job_id bigint,
  p_attempt_id uuid,
  p_signal text,
  p_hash bytea,
  p_seconds double precision
) returns timestamptz
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  c_most constant integer := 1000;
  v_now timestamptz := fenceline.clock();
  v_until timestamptz;
begin
  perform fenceline.check_name('signal', p_signal);
  if octet_length(p_hash) is distinct from 32 then
    raise exception using errcode = 'FL007', message = 'the hash of a callback has 32 bytes';
  end if;
  if p_seconds is null or p_seconds not between 1 and 31622400 then
    raise exception using errcode = 'FL007',
      message = format('a callback of %s seconds is out of range: use 1 to 31622400, a year', coalesce(p_seconds::text, 'no'));
  end if;
  perform fenceline.live_attempt(p_job_id, p_attempt_id);
  if (select count(*) from (select 1 from fenceline.callback c where c.job_id = p_job_id limit c_most) k) = c_most then
    raise exception using errcode = 'FL023',
      message = format('job %s has %s callbacks that nobody has used: no more are made', fenceline.public_id(p_job_id), c_most);
  end if;
  insert into fenceline.callback as c (hash, job_id, signal, created_at, expires_at)
  values (p_hash, p_job_id, p_signal, v_now, v_now + make_interval(secs => p_seconds))
  on conflict (hash) do update set hash = excluded.hash where c.job_id = p_job_id  -- asked again: the reply was lost
  returning c.expires_at into v_until;
  return v_until;
end;
$$;

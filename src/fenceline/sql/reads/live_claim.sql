-- A live attempt as claim_jobs returned it, for whoever runs a part of its job elsewhere (a finalizer on the server). No
-- row: the attempt is gone.
-- roles: worker
create or replace function fenceline.live_claim(p_job_id bigint, p_attempt_id uuid) returns table (
  lane text, job_id bigint, attempt_id uuid, token bigint, number smallint, kind text, args json, tenant text,
  priority smallint, seq bigint, max_attempts smallint, timeout_seconds double precision, alone boolean, more jsonb
)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select r.lane, r.job_id, r.attempt_id, r.token, r.number, j.kind, j.args, j.tenant, r.priority,
         coalesce(r.seq, r.job_id), j.max_attempts, j.timeout_seconds, r.deaths is not null,
         nullif(fenceline.attempt_details(r.job_id, r.uses), '{}')
  from fenceline.running r join fenceline.job j on j.id = r.job_id
  where r.job_id = p_job_id and r.attempt_id = p_attempt_id;
$$;

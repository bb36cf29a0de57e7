-- The attempts of an earlier claim with this request id that are still live: the answer to a repeat whose first reply
-- was lost. Scans `running`: it is small, and a repeat is rare.
-- roles: none
create or replace function fenceline.claimed_before(p_worker_id integer, p_request_id uuid) returns table (
  job_id bigint, attempt_id uuid, token bigint, number smallint, kind text, args json, tenant text, priority smallint,
  seq bigint, max_attempts smallint, timeout_seconds double precision, alone boolean, more jsonb
)
language sql stable as $$
  select r.job_id, r.attempt_id, r.token, r.number, j.kind, j.args, j.tenant, r.priority, coalesce(r.seq, r.job_id),
         j.max_attempts, j.timeout_seconds, r.deaths is not null, nullif(fenceline.attempt_details(r.job_id, r.uses), '{}')
  from fenceline.running r join fenceline.job j on j.id = r.job_id
  where r.worker_id = p_worker_id and r.request_id = p_request_id
  order by r.priority desc, coalesce(r.seq, r.job_id);
$$;

-- What goes with an attempt beyond its plain columns: claim_details, and `tell_start` where whoever runs it must tell of the
-- start before (see end_attempt).
-- roles: none
create or replace function fenceline.attempt_details(p_job_id bigint, p_uses integer) returns jsonb
language sql stable as $$
  select fenceline.claim_details(p_job_id)
         || case when p_uses & 128 /* tells start */ <> 0 then '{"tell_start": true}'::jsonb else '{}'::jsonb end;
$$;

-- A job id in JSON: a public id (string) or an internal one (number). Raises FL017.
-- roles: none
create or replace function fenceline.read_job_id(p_id jsonb) returns bigint
language sql immutable parallel safe as $$
  select case jsonb_typeof(p_id)
           when 'number' then (p_id #>> '{}')::bigint
           when 'string' then fenceline.parse_public_id(p_id #>> '{}') end;
$$;

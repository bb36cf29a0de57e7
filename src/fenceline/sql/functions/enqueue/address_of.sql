-- Whom a job is meant for, in the form that a claim compares with who asks (`runner <@ claimer`).
-- roles: none
create or replace function fenceline.address_of(p_runner jsonb) returns jsonb
language sql immutable strict parallel safe as $$
  select jsonb_build_object(case jsonb_typeof(p_runner) when 'string' then 'name' else 'labels' end, p_runner);
$$;

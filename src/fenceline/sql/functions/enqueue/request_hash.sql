-- What an enqueue asks for, as a hash: two that are equal are one request sent twice. What the way adds is left out: the
-- trace, the role, the parent, and the snapshot, which the handler's code takes anew. So are sealed args, which look
-- different each time.
-- roles: none
create or replace function fenceline.request_hash(p_kind text, p_args json, p_options jsonb) returns bytea
language sql immutable parallel safe as $$
  select sha256(convert_to(jsonb_build_array(
    p_kind, case when p_args -> '$sealed' is null then p_args::jsonb end,
    p_options - array['idempotency_key', 'traceparent', 'actor_role', 'bound_lanes', 'bound_kinds', 'autocommit',
                       'parent', 'snapshot'])::text, 'UTF8'));
$$;

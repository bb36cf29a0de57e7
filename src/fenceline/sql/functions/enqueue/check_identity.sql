-- Raises FL071 unless a job of the kind, in this tenant, enqueued by somebody of this role, may name the identity.
--
-- p_rules     of the kind: {"tenant:acme": […], "role:operator": […], "*": […]}, each a list of identities, or of "*" for any;
--             null: no rule
-- p_role      null: unknown, and then no rule about roles helps
-- roles: none
create or replace function fenceline.check_identity(p_kind text, p_identity text, p_tenant text, p_role text, p_rules jsonb)
returns void
language plpgsql immutable as $$
begin
  if p_rules is null or p_identity is null then
    return;
  end if;
  if not exists (
    select 1 from jsonb_each(p_rules) r
    where r.key in ('*', 'tenant:' || p_tenant, 'role:' || p_role) and r.value ?| array['*', p_identity]
  ) then
    raise exception using errcode = 'FL071', message = format(
      'identity %L is not for jobs of kind %L that are enqueued in tenant %L%s', left(p_identity, 80), p_kind, p_tenant,
      coalesce(' by role ' || quote_literal(p_role), '')),
      hint = 'The kind''s decorator says who may name it (identities=).';
  end if;
end;
$$;

-- Appends a row to the audit of operator actions.
-- roles: none
create or replace function fenceline.record_event(p_actor text, p_action text, p_subject text, p_tenant text,
                                                  p_reason text, p_before jsonb, p_after jsonb) returns void
language sql as $$
  insert into fenceline.event (id, at, actor, action, subject, tenant, reason, before, after)
  values (fenceline.next_id(), fenceline.clock(), p_actor, p_action, p_subject, p_tenant, p_reason, p_before, p_after);
$$;

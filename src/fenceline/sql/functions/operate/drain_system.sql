-- System drain: refuses enqueues from outside (FL014), retry_job among them, while claims, children, retries of failed
-- attempts and schedules go on; or resumes.
-- p_actor_tenant is not used any more: the event is in every tenant's audit.
-- roles: admin
create or replace function fenceline.drain_system(
  p_draining boolean,
  p_actor text default null,
  p_reason text default null,
  p_actor_tenant text default null
) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_before boolean;
begin
  if p_draining is null then
    raise exception using errcode = 'FL007', message = 'draining must be true (drain) or false (resume), not null';
  end if;
  select s.draining into v_before from fenceline.setting s for update;
  update fenceline.setting set draining = p_draining;
  perform fenceline.record_event(p_actor, case when p_draining then 'system.drain' else 'system.resume' end, 'system',
    null, p_reason, jsonb_build_object('draining', v_before), jsonb_build_object('draining', p_draining));
end;
$$;

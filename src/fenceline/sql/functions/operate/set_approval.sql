-- Says who may approve jobs: with p_by_other (the default) anybody who may approve but the one who enqueued the job, whoever
-- that is. For all tenants. Audited.
-- roles: admin
create or replace function fenceline.set_approval(p_by_other boolean, p_actor text default null, p_reason text default null)
returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_before boolean;
begin
  if p_by_other is null then
    raise exception using errcode = 'FL007', message = 'by_other must be true or false, not null';
  end if;
  select s.approval_by_other into v_before from fenceline.setting s for update;
  update fenceline.setting set approval_by_other = p_by_other;
  perform fenceline.record_event(p_actor, 'system.approval', 'system', null, p_reason,
    jsonb_build_object('by_other', v_before), jsonb_build_object('by_other', p_by_other));
end;
$$;

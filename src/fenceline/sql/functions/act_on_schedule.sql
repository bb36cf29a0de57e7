-- One verb on one schedule, for somebody of p_own_tenant who is bound to p_tenant (null: to none): the way of HTTP to the
-- verbs. A schedule belongs to the tenant of its jobs, and stays there.
--
-- p_verb      create, change (both with p_changes, as set_schedule takes them), delete, run
-- Returns the schedule afterwards; the job for run; null for delete.
-- Raises FL007 (verb), FL030 (missing or foreign), FL044 (exists), and what the verb raises.
-- roles: admin
create or replace function fenceline.act_on_schedule(
  p_name text,
  p_verb text,
  p_changes jsonb,
  p_actor text,
  p_tenant text,
  p_own_tenant text
) returns jsonb
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_tenant text;
  v_job_id bigint;
begin
  select coalesce(s.options ->> 'tenant', 'default') into v_tenant from fenceline.schedule s where s.name = p_name
  for update;
  if p_verb = 'create' then
    if found then
      raise exception using errcode = 'FL044', message = format('schedule %L exists already', p_name);
    end if;
    v_tenant := p_own_tenant;
  elsif not found or v_tenant <> p_tenant then
    raise exception using errcode = 'FL030', message = format('schedule %L does not exist', left(p_name, 80));
  end if;
  if p_verb = 'create' or p_changes ? 'options' then
    p_changes := p_changes || jsonb_build_object('options',
      coalesce(nullif(p_changes -> 'options', 'null'), '{}') || jsonb_build_object('tenant', v_tenant));
  end if;
  case p_verb
    when 'create' then return fenceline.set_schedule(p_name, p_changes, p_actor, true);
    when 'change' then return fenceline.set_schedule(p_name, p_changes, p_actor, false);
    when 'delete' then
      perform fenceline.delete_schedule(p_name, p_actor);
      return null;
    when 'run' then
      select r.job_id into v_job_id from fenceline.run_schedule(p_name, p_actor) r;
      return fenceline.get_job(v_job_id);
    else
      raise exception using errcode = 'FL007', message = format('verb %L is unknown', p_verb);
  end case;
end;
$$;

-- One verb on one schedule, for somebody of p_own_tenant who is bound to p_tenant (null: to none): the way of HTTP to the
-- verbs. A schedule belongs to the tenant of its jobs, and stays there. A tenant's names are its own: one that another tenant
-- has is stored as name@tenant, and nothing in the answer tells (find_schedule). Only who is bound to none is told that
-- somebody has it.
--
-- p_verb      create, change (both with p_changes, as set_schedule takes them), delete, run
-- Returns the schedule afterwards; the job for run; null for delete.
-- Raises FL007 (verb), FL030 (missing or foreign), FL044 (exists), FL071 (see below), and what the verb raises.
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
  v_name text;
  v_job_id bigint;
begin
  if p_verb = 'create' then
    perform fenceline.check_name('schedule', p_name);
    perform fenceline.take_verb_lock(1179926089, hashtext(p_name));  -- as all who would create it
    if coalesce(fenceline.find_schedule(p_name, p_own_tenant), fenceline.find_schedule(p_name, p_tenant)) is not null then
      raise exception using errcode = 'FL044', message = format('schedule %L exists already', p_name);
    end if;
    v_tenant := p_own_tenant;
    v_name := p_name;
    if exists (select 1 from fenceline.schedule s where s.name = p_name) then
      v_name := p_name || '@' || p_own_tenant;
    end if;
  else
    select s.name, coalesce(s.options ->> 'tenant', 'default') into v_name, v_tenant from fenceline.schedule s
    where s.name = (select fenceline.find_schedule(p_name, p_tenant)) for update;
    if not found or v_tenant <> p_tenant then
      raise exception using errcode = 'FL030', message = format('schedule %L does not exist', left(p_name, 80));
    end if;
  end if;
  if p_verb = 'change' and p_changes ?| array['kind', 'args'] and not p_changes ? 'options' and exists (
    select 1 from fenceline.schedule s where s.name = v_name and s.options ->> 'identity' is not null) then
    -- Whoever says what is done with an identity must be one who may name it.
    raise exception using errcode = 'FL071',
      message = format('schedule %L names an identity: give its options too when you change its kind or args', p_name);
  end if;
  if p_verb = 'create' or p_changes ? 'options' then
    p_changes := p_changes || jsonb_build_object('options',
      coalesce(nullif(p_changes -> 'options', 'null'), '{}') || jsonb_build_object('tenant', v_tenant));
  end if;
  case p_verb
    when 'create', 'change' then
      return fenceline.set_schedule(v_name, p_changes, p_actor, p_verb = 'create')
             || case when p_tenant is null then '{}' else jsonb_build_object('name', p_name) end;
    when 'delete' then
      perform fenceline.delete_schedule(v_name, p_actor);
      return null;
    when 'run' then
      select r.job_id into v_job_id from fenceline.run_schedule(v_name, p_actor) r;
      return fenceline.describe_job(v_job_id);
    else
      raise exception using errcode = 'FL007', message = format('verb %L is unknown', p_verb);
  end case;
end;
$$;

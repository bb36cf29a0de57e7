-- Writes a schedule whose declaration or overrides have changed: the one place where the two are put together. What
-- operators say is stronger, setting by setting; cron and every are one.
--
-- p_old       the row as it is, locked by the caller; its name is null when the schedule is new
-- Ticks are counted anew from this moment on when the timing has changed or a pause is over: what came before is not made
-- up for. Everything else leaves the next tick where it is.
-- Raises FL031 for a name@tenant (find_schedule) with jobs of another tenant, and what read_schedule raises.
-- roles: none
create or replace function fenceline.store_schedule(p_name text, p_old fenceline.schedule, p_declared jsonb,
                                                    p_overrides jsonb, p_actor text)
returns fenceline.schedule
language plpgsql as $$
declare
  v_now timestamptz := fenceline.clock();
  v_said jsonb := coalesce(p_declared, '{}');
  v_new fenceline.schedule;
begin
  if p_overrides ?| array['cron', 'every'] then
    v_said := v_said - array['cron', 'every'];
  end if;
  v_new := fenceline.read_schedule(fenceline.schedule_name(p_name), v_said || p_overrides);
  if p_name not in (v_new.name, v_new.name || '@' || coalesce(v_new.options ->> 'tenant', 'default')) then
    raise exception using errcode = 'FL031',
      message = format('the jobs of schedule %L cannot belong to tenant %L', p_name,
                       coalesce(v_new.options ->> 'tenant', 'default')),
      hint = 'What stands behind "@" is the tenant.';
  end if;
  v_new.name := p_name;
  v_new.declared := p_declared;
  v_new.overrides := p_overrides;
  v_new.revision := coalesce(p_old.revision, 0) + 1;
  v_new.created_at := coalesce(p_old.created_at, v_now);
  v_new.changed_at := v_now;
  v_new.changed_by := p_actor;
  v_new.declared_at := p_old.declared_at;
  v_new.last_at := p_old.last_at;
  v_new.last_job := p_old.last_job;
  if (v_new.cron, v_new.every, v_new.timezone, v_new.paused)
     is not distinct from (p_old.cron, p_old.every, p_old.timezone, p_old.paused) then
    v_new.settled_at := p_old.settled_at;
    v_new.next_at := p_old.next_at;
    v_new.due_at := case when p_old.error is null then p_old.due_at else v_now end;
  else
    v_new.settled_at := v_now;
    v_new.due_at := case when v_new.paused then 'infinity'::timestamptz else v_now end;
  end if;

  if p_old.name is null then
    insert into fenceline.schedule (name, kind, args, options, cron, every, timezone, misfire, misfire_limit, windows,
                                    paused, declared, overrides, revision, settled_at, next_at, due_at, last_at,
                                    last_job, error, created_at, changed_at, changed_by, declared_at)
    select v_new.name, v_new.kind, v_new.args, v_new.options, v_new.cron, v_new.every, v_new.timezone, v_new.misfire,
           v_new.misfire_limit, v_new.windows, v_new.paused, v_new.declared, v_new.overrides, v_new.revision,
           v_new.settled_at, v_new.next_at, v_new.due_at, v_new.last_at, v_new.last_job, v_new.error,
           v_new.created_at, v_new.changed_at, v_new.changed_by, v_new.declared_at;
    return v_new;
  end if;
  update fenceline.schedule s
  set kind = v_new.kind, args = v_new.args, options = v_new.options, cron = v_new.cron, every = v_new.every,
      timezone = v_new.timezone, misfire = v_new.misfire, misfire_limit = v_new.misfire_limit,
      windows = v_new.windows, paused = v_new.paused, declared = v_new.declared, overrides = v_new.overrides,
      revision = v_new.revision, settled_at = v_new.settled_at, next_at = v_new.next_at, due_at = v_new.due_at,
      error = null, changed_at = v_new.changed_at, changed_by = v_new.changed_by
  where s.name = p_name;
  return v_new;
end;
$$;

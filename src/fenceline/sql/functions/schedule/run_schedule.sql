-- Enqueues a schedule's job now, beside its ticks; also while it is paused or in a window, because somebody asked for it: a
-- CronJob, say, with a schedule that is paused here. The job is as a tick's is: without a policy of its own it is retried once.
-- Returns the job's internal id and whether this call made it (false: its dedupe key found another).
-- Raises FL030, and what enqueue raises.
-- roles: producer, worker
create or replace function fenceline.run_schedule(
  p_name text,
  p_actor text default null,
  out job_id bigint,
  out created boolean
)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_schedule fenceline.schedule;
begin
  select * into v_schedule from fenceline.schedule s where s.name = p_name;
  if not found then
    raise exception using errcode = 'FL030', message = format('schedule %L does not exist', p_name);
  end if;
  select e.job_id, e.created into run_schedule.job_id, run_schedule.created
  from fenceline.enqueue_scheduled(v_schedule, null) e;
  perform fenceline.record_event(p_actor, 'schedule.run', fenceline.schedule_name(p_name),
    coalesce(v_schedule.options ->> 'tenant', 'default'), null, null,
    jsonb_build_object('job', fenceline.public_id(job_id)));
end;
$$;

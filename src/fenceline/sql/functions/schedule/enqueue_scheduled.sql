-- Makes the job of a schedule's tick (null: somebody asked for it). Its run_at is the tick, so that the handler can tell
-- which one it is. Where neither the schedule nor the kind says otherwise, it has priority 0 and two attempts: it is
-- retried once, and then the next tick comes.
-- roles: none
create or replace function fenceline.enqueue_scheduled(
  p_schedule fenceline.schedule,
  p_tick timestamptz,
  out job_id bigint,
  out created boolean
)
language plpgsql as $$
declare
  v_defaults jsonb;
  v_made record;
begin
  select jsonb_build_object('priority', coalesce(max(k.priority), 0), 'max_attempts', coalesce(max(k.max_attempts), 2))
    into v_defaults
  from fenceline.kind k where k.name = p_schedule.kind;
  if p_tick is not null then
    v_defaults := v_defaults || jsonb_build_object('run_at', p_tick);
  end if;
  v_made := fenceline.insert_jobs(p_schedule.kind, array[p_schedule.args::json],
                                  (v_defaults || p_schedule.options)::json,
                                  'schedule:' || fenceline.schedule_name(p_schedule.name), null, 'schedule');
  job_id := v_made.job_ids[1];
  created := coalesce(v_made.created[1], true);
end;
$$;

-- Decides ticks of a schedule, all at once or not at all: each is enqueued or noted as skipped, and the next one is set.
--
-- p_revision, p_expected   the schedule as the caller read it: its revision and its next tick. When either has changed
--                          somebody else has decided, or an operator has changed it: then nothing happens
-- p_until                  every tick up to here is decided by this call
-- p_ticks, p_outcomes, p_from   the ticks in order; 'fire', 'window' or 'missed'; missed: the first tick of those that this
--                          row stands for
-- p_next                   the first tick after p_until; null: there is none
-- Returns how many jobs were made; null when it was not the caller's turn.
-- Exactly one fire per tick: the row's lock and the comparison let one caller through, and the primary key of schedule_tick
-- holds even when the clock is set back. A refused enqueue is noted with its tick: the schedule goes on.
-- What it enqueues may have to wait for somebody's open transaction (a dedupe key, a resource): then it gives up soon, nothing
-- has happened, and the caller comes again.
-- Raises FL031 for ticks that cannot be.
-- roles: worker
create or replace function fenceline.fire_schedule(
  p_name text,
  p_revision bigint,
  p_expected timestamptz,
  p_until timestamptz,
  p_ticks timestamptz[],
  p_outcomes text[],
  p_from timestamptz[],
  p_next timestamptz
) returns integer
language plpgsql security definer set search_path = pg_catalog, pg_temp set lock_timeout = '500ms' as $$
declare
  v_now timestamptz := fenceline.clock();
  v_schedule fenceline.schedule;
  v_tick record;
  v_job_id bigint;
  v_created boolean;
  v_last_at timestamptz;
  v_last_job bigint;
  v_fired integer := 0;
begin
  select * into v_schedule from fenceline.schedule s
  where s.name = p_name and s.revision = p_revision and s.next_at is not distinct from p_expected
    and s.due_at <= v_now and p_until <= v_now  -- else the clock was set back
  for update skip locked;
  if not found then
    return null;
  end if;
  if p_until < v_schedule.settled_at or p_next <= p_until
     or exists (select 1 from unnest(p_ticks) t where t > p_until or t <= v_schedule.settled_at or t is null) then
    raise exception using errcode = 'FL031',
      message = format('ticks of schedule %L must lie after %s and up to %s, the next one after that',
                       fenceline.schedule_name(p_name), v_schedule.settled_at, p_until);
  end if;

  for v_tick in
    select t.tick_at, t.outcome, t.from_at
    from unnest(p_ticks, p_outcomes, p_from) t(tick_at, outcome, from_at) order by t.tick_at
  loop
    insert into fenceline.schedule_tick (schedule, tick_at, outcome, decided_at, from_at)
    values (p_name, v_tick.tick_at, case v_tick.outcome when 'fire' then 'fired' else v_tick.outcome end, v_now,
            v_tick.from_at)
    on conflict do nothing;
    if not found or v_tick.outcome <> 'fire' then
      continue;
    end if;
    begin
      select e.job_id, e.created into v_job_id, v_created
      from fenceline.enqueue_scheduled(v_schedule, v_tick.tick_at) e;
      v_fired := v_fired + v_created::integer;
      v_last_at := v_tick.tick_at;
      v_last_job := v_job_id;
      update fenceline.schedule_tick t
      set job_id = v_job_id, outcome = case when v_created then 'fired' else 'deduplicated' end
      where t.schedule = p_name and t.tick_at = v_tick.tick_at;
    exception when others then
      if sqlstate not like 'FL%' then
        raise;
      end if;
      update fenceline.schedule_tick t set outcome = 'refused', error = sqlerrm
      where t.schedule = p_name and t.tick_at = v_tick.tick_at;
    end;
  end loop;

  update fenceline.schedule s
  set settled_at = p_until, next_at = p_next, due_at = coalesce(p_next, 'infinity'), error = null,
      last_at = coalesce(v_last_at, s.last_at), last_job = coalesce(v_last_job, s.last_job)
  where s.name = p_name;
  return v_fired;
end;
$$;

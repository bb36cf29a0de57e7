-- What has to happen at least once a second somewhere, for the whole fleet: any worker or server may call it as often
-- as it likes, the work is done once per interval. `upkeep` is the other half, about once a minute.
-- Returns counts of what was done, `schedules_due` (fire_schedule is for a program that can compute ticks),
-- `limits_tenants` (then call count_tenants, which may take its time, in a transaction of its own), and `next_seconds`,
-- when the next timer or schedule is due (null: there is none); null when the work itself was not due.
-- roles: worker
create or replace function fenceline.maintain(p_interval_seconds double precision default 0.5) returns jsonb
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_done jsonb;
begin
  if not fenceline.is_due('live', p_interval_seconds) then
    return null;
  end if;
  v_done := jsonb_build_object(
    'swept', fenceline.sweep(),
    'promoted', fenceline.promote_timers(),
    'expired', fenceline.expire_jobs(),
    'verified', fenceline.verify_dependencies(),
    'admitted', fenceline.admit_keys());
  v_done := v_done || jsonb_build_object(
    'limits_tenants', (select s.limits_tenants from fenceline.setting s),
    'schedules_due', (select count(*) from fenceline.schedule s where s.due_at <= fenceline.clock()),
    'next_seconds', (
      select extract(epoch from min(n.at) - fenceline.clock())
      from (select min(t.run_at) from fenceline.timer t
            union all
            select min(s.due_at) from fenceline.schedule s
            where s.due_at > fenceline.clock() and s.due_at < 'infinity') n(at)));
  return v_done;
end;
$$;

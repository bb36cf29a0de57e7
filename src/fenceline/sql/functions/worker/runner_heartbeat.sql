-- A heartbeat of somebody's runner (heartbeat), answered as its server answers: {"cancel": attempts asked to stop, "grace":
-- the seconds that each of those has left, "stale": attempts that are gone, "lease_seconds"}.
--
-- p_held      as in heartbeat; null: only the lease is renewed
-- Raises FL065 and FL015 as own_runner.
-- Lock order: as heartbeat.
-- roles: worker
create or replace function fenceline.runner_heartbeat(p_runner_id integer, p_owner text, p_held uuid[] default null)
returns json
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_said record;
begin
  select coalesce(bool_or(h.word = 'lost'), false) as lost,
         coalesce(json_agg(h.attempt_id) filter (where h.word = 'stale'), '[]') as stale
    into v_said
  from fenceline.heartbeat(array[fenceline.own_runner(p_runner_id, p_owner)], p_held) h;
  if v_said.lost then
    raise exception using errcode = 'FL015',
      message = format('runner %s has signed off, or its lease is over: register again', p_runner_id);
  end if;
  return (
    select json_build_object(
      'cancel', coalesce(json_agg(r.attempt_id) filter (where r.job_id is not null), '[]'),
      'grace', coalesce(json_object_agg(r.attempt_id, greatest(extract(epoch from r.cancel_deadline - fenceline.clock()), 0))
                        filter (where r.job_id is not null), '{}'),
      'stale', v_said.stale, 'lease_seconds', min(w.lease_seconds))
    from fenceline.worker w
    left join fenceline.running r on r.worker_id = w.id and r.cancel_deadline is not null
    where w.id = p_runner_id);
end;
$$;

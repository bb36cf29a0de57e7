-- Jobs that wait for a worker that takes their args (refusal), when the last such worker has gone: they fail, code
-- `invalid_args`, a minute after they were refused last, unless nobody who knows the kind lives: then all is still open.
-- Forgets what was refused of jobs that have ended. A job that somebody is changing (an open reprioritise, say) is left for the
-- next time. Returns how many failed.
-- Lock order: as end_waiting. At most 1000 jobs a time, by chance: those that go on waiting must not keep the others from
-- their turn.
-- roles: none
create or replace function fenceline.verify_refusals() returns integer
language plpgsql as $$
declare
  c_patience constant interval := '1 minute';  -- a worker that is restarted takes it when it is back
  v_refused record;
  v_failed integer := 0;
begin
  for v_refused in
    select f.job_id, f.signatures, j, r.lane, fenceline.is_live(f.job_id) as is_live
    from (select o.job_id, o.signatures from fenceline.refusal o where o.refused_at < fenceline.clock() - c_patience
          order by random() limit 1000) f
    left join fenceline.job j on j.id = f.job_id
    left join fenceline.ready r on r.job_id = f.job_id
  loop
    if not v_refused.is_live then
      delete from fenceline.refusal where job_id = v_refused.job_id;
    elsif v_refused.lane is not null and fenceline.count_takers(v_refused.j, v_refused.lane, v_refused.signatures) = 0
          and fenceline.count_takers(v_refused.j, v_refused.lane, null) > 0 then
      continue when not fenceline.lock_waiting(v_refused.job_id);
      v_failed := v_failed + cardinality(fenceline.end_waiting(array[v_refused.job_id], 'failed',
        jsonb_build_object('code', 'invalid_args', 'type', 'InvalidArgs', 'message', format(
          'args of kind %s were refused by every live worker that has a handler for it', (v_refused.j).kind)), null));
      delete from fenceline.refusal where job_id = v_refused.job_id;
    end if;
  end loop;
  return v_failed;
end;
$$;

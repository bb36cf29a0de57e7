-- Records phase and progress of a live attempt; a new phase starts with empty progress, and the one before is kept.
-- Returns false when stale.
-- Raises FL005 (progress over the limit for results), FL007 (no text, or one over 200 characters, as phase).
--
-- p_phase     null: the phase stays
-- p_progress  null: the progress stays, unless the phase is new. Items (move_items) stay with the phase
-- roles: worker
create or replace function fenceline.set_progress(
  p_job_id bigint,
  p_attempt_id uuid,
  p_phase text default null,
  p_progress jsonb default null
) returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_now timestamptz := fenceline.clock();
begin
  if length(p_phase) not between 1 and 200 then
    raise exception using errcode = 'FL007',
      message = format('phase %L is not valid: use 1 to 200 characters', left(p_phase, 80));
  end if;
  perform fenceline.check_size('the progress', p_progress);
  update fenceline.running r set active_at = v_now where r.job_id = p_job_id and r.attempt_id = p_attempt_id;
  if not found then
    return false;
  end if;
  perform fenceline.keep_phase(p_job_id, p_attempt_id, p_phase);
  insert into fenceline.progress as p (job_id, attempt_id, phase, progress, updated_at, started_at)
  values (p_job_id, p_attempt_id, p_phase, p_progress, v_now, v_now)
  on conflict (job_id) do update set
    attempt_id = excluded.attempt_id,
    phase = coalesce(excluded.phase, case when p.attempt_id = excluded.attempt_id then p.phase end),
    progress = case
      when p.attempt_id = excluded.attempt_id and coalesce(excluded.phase = p.phase, excluded.phase is null)
      then coalesce(case when p.progress ? 'items' then jsonb_build_object('items', p.progress -> 'items') end
                    || excluded.progress, excluded.progress, p.progress)
      else excluded.progress end,
    started_at = case
      when p.attempt_id = excluded.attempt_id and coalesce(excluded.phase = p.phase, excluded.phase is null)
      then p.started_at else v_now end,
    updated_at = v_now;
  if exists (select 1 from fenceline.follow) then
    perform fenceline.tell_followers(array[p_job_id]);
  end if;
  return true;
end;
$$;

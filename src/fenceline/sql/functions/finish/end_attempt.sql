-- Writes the history of an attempt whose `running` row the caller has just deleted (so the fence is rotated), and sends
-- the job back to the queue unless this is its end. Returns the outcome if final, else null; the caller settles.
--
-- p_asked     failed · failed_for_good · cancelled · snoozed · waiting · released · refused · lost · crashed · quarantined; a success
--             does not come here (finish_attempts)
-- The rules, in one place:
--   failed, lost   again while number < max_attempts, else failed; lost goes back at once, failed after its delay
--   snoozed, released, crashed   again, and the attempt is refunded (the token is not)
--   waiting        as snoozed, until what its handler waits for has come (begin_wait, hold_waiting)
--   lost before its start was told   as released, if its worker has promised to tell (promise_starts). On the last attempt
--                  that is exact: the start is told before the handler runs. On others the handler may have run for a moment;
--                  so the refund is given, and from then on every start of the job is told before (uses, bit 128). Without
--                  that a job that takes its machine down at once would do so for ever
--   refused        the args do not fit this worker's handler. Again, refunded, for live workers whose handlers take them: those with
--                  a signature that has refused the job do not get it again (uses, bit 512). At the tail, because claims of the others
--                  may begin behind its old place. Failed when there are none
--   a job that was asked to stop ends as cancelled where it would otherwise go back to the queue
-- roles: none
create or replace function fenceline.end_attempt(
  p_run fenceline.running,
  p_asked text,
  p_result jsonb default null,
  p_error jsonb default null,
  p_errors jsonb default null,
  p_delay double precision default null,
  p_ran_seconds double precision default null,
  p_metadata jsonb default null,
  p_actor text default null,
  p_deaths smallint default null
) returns text
language plpgsql as $$
declare
  v_now timestamptz := fenceline.clock();
  v_job fenceline.job;
  v_outcome text;
  v_final boolean;
  v_error jsonb := p_error;
  v_number smallint := p_run.number;
  v_run_at timestamptz;
  v_live fenceline.live;
  v_seq bigint;
  v_uses integer := coalesce(p_run.uses, 0);
  v_refused text[];
  v_as_released boolean := p_asked = 'released' or (
    p_asked = 'lost' and p_run.started_at is null
    and exists (select 1 from fenceline.worker w where w.id = p_run.worker_id and w.tells_starts));
begin
  select * into v_job from fenceline.job j where j.id = p_run.job_id;
  case p_asked
    when 'failed', 'lost' then
      v_final := p_run.number >= v_job.max_attempts and not v_as_released;
      v_outcome := case when v_final then 'failed' else p_asked end;
      v_number := p_run.number - v_as_released::integer;
    when 'failed_for_good', 'quarantined' then
      v_final := true;
      v_outcome := 'failed';
    when 'refused' then
      v_refused := fenceline.note_refusal(p_run, v_job.kind);
      v_final := v_refused is null or fenceline.count_takers(v_job, p_run.lane, v_refused) = 0;
      v_outcome := case when v_final then 'failed' else 'released' end;
      v_number := greatest(p_run.number - 1, 0);
      v_uses := v_uses | 512 /* refused */;
    when 'snoozed', 'released', 'crashed' then
      v_final := false;
      v_outcome := p_asked;
      v_number := p_run.number - 1;
    when 'waiting' then
      v_final := false;
      v_outcome := 'snoozed';
      v_number := p_run.number - 1;
    else
      v_final := true;
      v_outcome := p_asked;
  end case;
  if not v_final and p_run.cancel_requested_at is not null then
    v_final := true;
    v_outcome := 'cancelled';
  end if;
  if v_outcome = 'cancelled' then
    v_error := coalesce(v_error, fenceline.cancelled_error(p_run.cancel_reason));
  end if;
  insert into fenceline.history (job_id, ended_at, token, claimed_at, started_at, worker_id, attempt_id, number, final,
                                 outcome, asked, result, error, errors, metadata, actor)
  values (p_run.job_id, v_now, p_run.token, p_run.claimed_at,
          coalesce(v_now - make_interval(secs => p_ran_seconds), p_run.started_at), p_run.worker_id, p_run.attempt_id,
          p_run.number, v_final, v_outcome, nullif(p_asked, v_outcome), p_result, v_error, p_errors, p_metadata,
          coalesce(p_actor, p_run.cancel_actor));
  if p_run.counted then
    perform fenceline.wake(array[p_run.lane]);  -- a slot is free
  end if;
  if v_uses & 64 /* children */ <> 0 then
    delete from fenceline.child c where c.job_id = p_run.job_id;  -- only a good end makes children
    v_uses := v_uses & ~64 /* children */;
  end if;
  if v_final then
    if v_uses & 512 /* refused */ <> 0 then
      delete from fenceline.refusal where job_id = p_run.job_id;
    end if;
    return v_outcome;
  end if;

  if v_as_released then
    v_seq := coalesce(p_run.seq, p_run.job_id);  -- as if it had not been claimed
  else
    v_seq := fenceline.next_id();
  end if;
  if p_asked <> 'refused' and (not v_as_released or p_run.started_at is not null or p_ran_seconds is not null) then
    v_uses := v_uses & ~16 /* expires */;  -- it has started: expires_at is met
  end if;
  if p_asked = 'lost' and v_as_released then
    v_uses := v_uses | 128 /* tells start */;
  end if;
  if p_asked = 'failed' then
    v_run_at := v_now + make_interval(secs => coalesce(p_delay, fenceline.retry_delay(
      coalesce(v_job.retry, (select k.retry from fenceline.kind k where k.name = v_job.kind)), p_run.number)));
  elsif p_asked = 'snoozed' then
    v_run_at := v_now + make_interval(secs => coalesce(p_delay, 0));
  end if;
  v_live := row(p_run.job_id, v_seq, p_run.priority, p_run.lane, v_job.kind, v_job.tenant, v_number, p_run.token,
                coalesce(p_deaths, p_run.deaths), nullif(v_uses, 0), v_run_at)::fenceline.live;
  if p_asked = 'waiting' then
    perform fenceline.hold_waiting(v_live);
  else
    perform fenceline.place_jobs(array[v_live]);
  end if;
  return null;
end;
$$;

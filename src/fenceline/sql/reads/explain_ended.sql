-- How a job ended, in one sentence (explain_job).
-- roles: none
create or replace function fenceline.explain_ended(p_job_id bigint, p_tenant text, p_created_by text) returns jsonb
language plpgsql stable as $$
declare
  v_id text := fenceline.public_id(p_job_id);
  v_end fenceline.history;
  v_job fenceline.job;
  v_worker text;
  v_again text;
  v_text text;
begin
  select * into v_end from fenceline.history h where h.job_id = p_job_id and h.final;
  select * into v_job from fenceline.job j where j.id = p_job_id;
  select w.name into v_worker from fenceline.worker w where w.id = v_end.worker_id;
  if exists (select 1 from fenceline.job j where j.retry_of = p_job_id) then
    v_again := fenceline.seen_job(fenceline.newest_retry(p_job_id), p_tenant, p_created_by);
  end if;
  v_text := case v_end.outcome
    when 'succeeded' then 'It succeeded'
    when 'succeeded_with_errors' then 'It succeeded, with errors'
    when 'failed' then 'It failed for good'
    else 'It was cancelled' end;
  if v_end.claimed_at is null then
    v_text := v_text || ' before a worker had it' || coalesce(', by ' || v_end.actor, '');
  else
    v_text := v_text || format(' in attempt %s of %s, after %s%s', v_end.number, v_job.max_attempts,
      fenceline.say_seconds(extract(epoch from v_end.ended_at - coalesce(v_end.started_at, v_end.claimed_at))),
      coalesce(' on ' || v_worker, ''));
  end if;
  v_text := v_text || coalesce(': ' || fenceline.say_error(v_end.error), '') || '.'
            || coalesce(' It was run again as ' || v_again || '.', '');
  return fenceline.reason(v_end.outcome, v_text, v_end.ended_at, null,
    jsonb_build_object('error', v_end.error - 'traceback', 'attempt', v_end.number, 'max_attempts', v_job.max_attempts,
                       'worker', v_worker, 'actor', v_end.actor, 'retried_as', v_again),
    case when v_end.outcome = 'succeeded' then '{}'::text[]
         when v_again is not null then array['fenceline jobs explain ' || v_again]
         else array['fenceline jobs show ' || v_id, 'fenceline jobs retry ' || v_id] end);
end;
$$;

-- The jobs that a retry has to wait for: those that the first one waited for, or their retries where those exist.
-- Null when it waited for none.
--
-- Raises FL008 when one of them is no longer kept: a run without it would look complete and not be. Raises FL011 when one
-- has ended badly and the job is to run after success only: its retry would be cancelled at once.
-- roles: none
create or replace function fenceline.retry_parents(p_job fenceline.job) returns bigint[]
language plpgsql stable as $$
declare
  v_parents bigint[] := array(select distinct fenceline.newest_retry(a) from unnest(p_job.after) a order by 1);
  v_bad record;
begin
  if cardinality(v_parents) = 0 then
    return null;
  end if;
  select p.id into v_bad from unnest(v_parents) p(id)
  where not exists (select 1 from fenceline.job j where j.id = p.id) limit 1;
  if found then
    raise exception using errcode = 'FL008',
      message = format('job %s cannot be retried: job %s, which it waited for, is no longer kept. Enqueue a new job instead',
                       fenceline.public_id(p_job.id), fenceline.public_id(v_bad.id));
  end if;
  select p.id, h.outcome into v_bad
  from unnest(v_parents) p(id) join fenceline.history h on h.job_id = p.id and h.final
  where h.outcome not in ('succeeded', 'succeeded_with_errors') limit 1;
  if found and p_job.after_policy = 'success' then
    raise exception using errcode = 'FL011',
      message = format('job %s cannot be retried: job %s, which it waits for, is %s. Retry that one first',
                       fenceline.public_id(p_job.id), fenceline.public_id(v_bad.id), v_bad.outcome),
      detail = fenceline.job_status(p_job.id);
  end if;
  return v_parents;
end;
$$;

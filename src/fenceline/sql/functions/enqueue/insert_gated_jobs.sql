-- Makes jobs that use a gate, a key or a lock, but for those whose key another job has: that one is the answer. p_jobs are
-- complete.
--
-- Many jobs whose keys are free are made at once. The others come after, one by one: whether a job that has a key lets go of
-- it is judged for each (take_dedupe_key), and one that takes it over must be there when the next one asks.
-- p_options   the options of each job; all wait for the same jobs (`after`)
-- p_numbered  true: the ids were given out before (add_children)
-- Returns the ids in the order of p_jobs, and whether this call made them.
-- Raises FL008 (dependency missing), FL013 (resource locked), FL020 (empty group), FL073 (the key stands for another request).
-- roles: none
create or replace function fenceline.insert_gated_jobs(
  p_jobs fenceline.job[],
  p_options jsonb[],
  p_numbered boolean,
  out job_ids bigint[],
  out created boolean[]
)
language plpgsql as $$
declare
  v_now timestamptz := fenceline.clock();
  v_after jsonb := p_options[1] -> 'after';
  v_free boolean[];
  v_ours fenceline.job[] := '{}';
  v_job fenceline.job;
  v_id bigint;
begin
  if cardinality(p_jobs) > 1 and v_after -> 'group' is null then  -- a job may be of the group that the next one waits for
    v_free := fenceline.take_free_keys(p_jobs, p_options);
    for v_i in 1 .. cardinality(p_jobs) loop
      if v_free[v_i] then
        v_ours := v_ours || p_jobs[v_i];
      end if;
    end loop;
    if cardinality(v_ours) > 0 then
      perform fenceline.write_gated_jobs(v_ours, v_after, p_numbered);
    end if;
  end if;
  for v_i in 1 .. cardinality(p_jobs) loop
    v_job := p_jobs[v_i];
    v_id := v_job.id;
    if v_free[v_i] is not true then
      if v_job.idempotency_key is not null then
        v_id := fenceline.take_idempotency_key(v_job.tenant, v_job.idempotency_key, v_job.id, v_now,
                                               fenceline.request_hash(v_job.kind, v_job.args, p_options[v_i]));
      end if;
      if v_job.dedupe_key is not null and v_id = v_job.id then
        v_id := fenceline.take_dedupe_key(v_job.tenant, v_job.dedupe_key, v_job.id,
                                          (p_options[v_i] -> 'autocommit' = 'true') is not true);
        if v_id <> v_job.id then
          -- Sent again, the same request must find the job that it was answered with.
          update fenceline.idempotency i set job_id = v_id
          where i.tenant = v_job.tenant and i.key = v_job.idempotency_key;
        end if;
      end if;
      if v_id = v_job.id then
        perform fenceline.write_gated_jobs(array[v_job], v_after, p_numbered);
      end if;
    end if;
    job_ids[v_i] := v_id;
    created[v_i] := v_id = v_job.id;
  end loop;
end;
$$;

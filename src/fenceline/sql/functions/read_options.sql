-- The options of an enqueue as a job row, every value checked. What is left out stays null.
-- `after` is only marked here (after_policy); insert_gated_job reads it, because it needs the other jobs.
-- Raises FL002, FL003, FL004, FL006 (snapshot), FL007, FL008 (requires_hash), FL017 (parent).
-- roles: none
create or replace function fenceline.read_options(p_kind text, p_options jsonb) returns fenceline.job
language plpgsql stable as $$
declare
  v_job fenceline.job;
  v_bad text;
begin
  v_job.kind := p_kind;
  v_job.tenant := 'default';
  if p_options = '{}' then
    return v_job;
  end if;
  if jsonb_typeof(p_options) <> 'object' then
    raise exception using errcode = 'FL007', message = 'options must be a JSON object';
  end if;
  -- Null is "left out"; what is inside a value is not ours to drop.
  p_options := coalesce(
    (select jsonb_object_agg(e.key, e.value) from jsonb_each(p_options) e where e.value <> 'null'), '{}');
  select string_agg(k, ', ') into v_bad
  from jsonb_object_keys(p_options) k
  where k <> all (array['lane', 'priority', 'run_at', 'expires_at', 'dedupe_key', 'idempotency_key', 'max_attempts',
                        'labels', 'resource_lock', 'key', 'key_limit', 'needs_approval', 'snapshot', 'requires_hash',
                        'after', 'identity', 'tenant', 'timeout', 'retry', 'group', 'parent', 'retry_of', 'delivery',
                        'traceparent']);
  if v_bad is not null then
    raise exception using errcode = 'FL007', message = format('unknown option %s for kind %L', v_bad, p_kind);
  end if;

  if p_options ? 'lane' then
    perform fenceline.check_name('lane', p_options ->> 'lane');
    v_job.lane := p_options ->> 'lane';
  end if;
  if p_options ? 'tenant' then
    perform fenceline.check_name('tenant', p_options ->> 'tenant');
    v_job.tenant := p_options ->> 'tenant';
  end if;
  if p_options ? 'priority' then
    v_job.priority := fenceline.read_integer(p_options, 'priority', -32768, 32767, 'FL003');
  end if;
  if p_options ? 'max_attempts' then
    v_job.max_attempts := fenceline.read_integer(p_options, 'max_attempts', 1, 1000, 'FL004');
  end if;
  if p_options ? 'key' then
    v_job.key := fenceline.read_text(p_options, 'key');
    v_job.key_limit := 1;
  end if;
  if p_options ? 'key_limit' then
    if v_job.key is null then
      raise exception using errcode = 'FL007', message = 'key_limit is given without a key: give both, or neither';
    end if;
    v_job.key_limit := fenceline.read_integer(p_options, 'key_limit', 1, 10000, 'FL007');
  end if;
  v_job.dedupe_key := fenceline.read_text(p_options, 'dedupe_key');
  v_job.idempotency_key := fenceline.read_text(p_options, 'idempotency_key');
  v_job.resource_lock := fenceline.read_text(p_options, 'resource_lock');
  v_job.identity := fenceline.read_text(p_options, 'identity');
  v_job.group_name := fenceline.read_text(p_options, 'group');
  v_job.delivery := fenceline.read_text(p_options, 'delivery');
  v_job.traceparent := fenceline.read_text(p_options, 'traceparent');
  v_job.requires_hash := fenceline.read_hash(v_job.tenant, p_options);
  v_job.run_at := fenceline.read_time(p_options, 'run_at');
  v_job.expires_at := fenceline.read_time(p_options, 'expires_at');
  v_job.timeout_seconds := fenceline.read_seconds(p_options, 'timeout');
  if p_options ? 'needs_approval' then
    if jsonb_typeof(p_options -> 'needs_approval') <> 'boolean' then
      raise exception using errcode = 'FL007',
        message = format('needs_approval %s is not a boolean', p_options -> 'needs_approval');
    end if;
    v_job.needs_approval := nullif((p_options ->> 'needs_approval')::boolean, false);
  end if;
  if p_options ? 'labels' then
    v_job.labels := fenceline.read_labels(p_options -> 'labels');
  end if;
  if p_options ? 'snapshot' then
    v_job.snapshot := p_options -> 'snapshot';
    begin
      v_job.snapshot_hash := fenceline.snapshot_hash(v_job.snapshot);
    exception when statement_too_complex then
      raise exception using errcode = 'FL006',
        message = format('snapshot of kind %L cannot be hashed: it is nested too deeply', p_kind);
    end;
  end if;
  if p_options ? 'retry' then
    v_job.retry := p_options -> 'retry';
  end if;
  if p_options ? 'after' then
    perform fenceline.check_after(p_options -> 'after');
    v_job.after_policy := coalesce(p_options -> 'after' ->> 'policy', 'success');
    if v_job.after_policy not in ('success', 'always') then
      raise exception using errcode = 'FL007',
        message = format('policy %L of after is unknown: use "success" or "always"', v_job.after_policy);
    end if;
    if p_options -> 'after' = '[]' then
      v_job.after_policy := null;
    end if;
  end if;
  v_job.parent := fenceline.read_job_id(p_options -> 'parent');
  v_job.retry_of := fenceline.read_job_id(p_options -> 'retry_of');
  return v_job;
end;
$$;

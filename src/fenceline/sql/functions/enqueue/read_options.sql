-- The options of an enqueue as a job row, every value checked. What is left out stays null.
-- `after` is only marked here (after_policy); write_gated_jobs reads it, because it needs the other jobs.
-- Raises FL002, FL003, FL004, FL006 (snapshot), FL007, FL008 (requires_hash), FL017 (parent).
-- roles: none
create or replace function fenceline.read_options(p_kind text, p_options jsonb) returns fenceline.job
language plpgsql stable as $$
declare
  v_job fenceline.job;
  v_rest jsonb;
begin
  v_job.kind := p_kind;
  v_job.tenant := 'default';
  if p_options = '{}' then
    return v_job;
  end if;
  if jsonb_typeof(p_options) <> 'object' then
    raise exception using errcode = 'FL007', message = 'options must be a JSON object';
  end if;
  -- What is looked for only where it is there costs a third: most jobs have one option or two.
  if jsonb_path_exists(p_options, 'strict $.* ? (@ == null)') then  -- "left out"; inside a value it is not ours to drop
    p_options := coalesce(
      (select jsonb_object_agg(e.key, e.value) from jsonb_each(p_options) e where e.value <> 'null'), '{}');
  end if;
  v_rest := p_options - array[
    'lane', 'priority', 'run_at', 'run_in', 'expires_at', 'dedupe_key', 'dedupe_until', 'idempotency_key', 'max_attempts',
    'labels', 'resource_lock', 'key', 'key_limit', 'needs_approval', 'snapshot', 'requires_hash', 'after', 'identity',
    'tenant', 'timeout', 'retry', 'group', 'parent', 'retry_of', 'delivery', 'traceparent', 'runner', 'actor_role',
    'bound_lanes', 'bound_kinds', 'autocommit'];
  if v_rest <> '{}' then
    raise exception using errcode = 'FL007', message = format(
      'unknown option %s for kind %L', (select string_agg(k, ', ') from jsonb_object_keys(v_rest) k), p_kind);
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
  if p_options ? 'dedupe_key' then
    v_job.dedupe_key := fenceline.read_text(p_options, 'dedupe_key');
  end if;
  if p_options ? 'dedupe_until' then
    if p_options -> 'dedupe_until' not in ('"claimed"', '"finished"') then
      raise exception using errcode = 'FL007', message = format(
        'dedupe_until %s is unknown: use "claimed" or "finished"', left((p_options -> 'dedupe_until')::text, 80));
    elsif v_job.dedupe_key is null then
      raise exception using errcode = 'FL007',
        message = 'dedupe_until is given without a dedupe_key: give both, or neither';
    end if;
    v_job.dedupe_until := nullif(p_options ->> 'dedupe_until', 'claimed');
  end if;
  if jsonb_typeof(p_options -> 'autocommit') <> 'boolean' then
    raise exception using errcode = 'FL007',
      message = format('autocommit %s is not a boolean', left((p_options -> 'autocommit')::text, 80));
  end if;
  if p_options ? 'idempotency_key' then
    v_job.idempotency_key := fenceline.read_text(p_options, 'idempotency_key');
  end if;
  if p_options ? 'resource_lock' then
    v_job.resource_lock := fenceline.read_text(p_options, 'resource_lock');
  end if;
  if p_options ? 'identity' then
    v_job.identity := fenceline.read_text(p_options, 'identity');
  end if;
  if p_options ? 'group' then
    v_job.group_name := fenceline.read_text(p_options, 'group');
  end if;
  if p_options ? 'delivery' then
    v_job.delivery := fenceline.read_text(p_options, 'delivery');
  end if;
  if p_options ? 'actor_role' then
    perform fenceline.read_text(p_options, 'actor_role');  -- see check_identity
  end if;
  if p_options ? 'traceparent' then
    v_job.traceparent := fenceline.read_text(p_options, 'traceparent');
  end if;
  if p_options ? 'requires_hash' then
    v_job.requires_hash := fenceline.read_hash(v_job.tenant, p_options);
  end if;
  if p_options ? 'run_at' then
    v_job.run_at := fenceline.read_time(p_options, 'run_at');
  end if;
  if p_options ? 'run_in' then
    if p_options ? 'run_at' then
      raise exception using errcode = 'FL007', message = 'run_at and run_in are both given: give one of them';
    elsif p_options -> 'run_in' <> '0' then  -- 0 is now, which is no gate
      v_job.run_at := fenceline.clock() + make_interval(secs => fenceline.read_seconds(p_options, 'run_in'));
    end if;
  end if;
  if p_options ? 'expires_at' then
    v_job.expires_at := fenceline.read_time(p_options, 'expires_at');
  end if;
  if p_options ? 'timeout' then
    v_job.timeout_seconds := fenceline.read_seconds(p_options, 'timeout');
  end if;
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
  if p_options ? 'runner' then
    v_job.runner := fenceline.read_runner(p_options -> 'runner');
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
  if p_options ? 'parent' then
    v_job.parent := fenceline.read_job_id(p_options -> 'parent');
  end if;
  if p_options ? 'retry_of' then
    v_job.retry_of := fenceline.read_job_id(p_options -> 'retry_of');
  end if;
  return v_job;
end;
$$;

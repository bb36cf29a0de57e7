-- Why a job waits for approval, for other jobs, for its key or for a signal (explain_job), and whether more gates lie behind.
-- roles: none
create or replace function fenceline.explain_held(p_job_id bigint, p_tenant text, p_created_by text) returns jsonb[]
language plpgsql stable as $$
declare
  c_named constant integer := 5;    -- jobs that are named
  c_counted constant integer := 1000;
  v_id text := fenceline.public_id(p_job_id);
  v_held fenceline.held;
  v_job fenceline.job;
  v_reasons jsonb[] := '{}';
  v_ids bigint[];
  v_seen text[];
  v_count bigint;
  v_ahead bigint;
  v_others boolean;
  v_wait fenceline.wait;
begin
  select * into v_held from fenceline.held h where h.job_id = p_job_id;
  select * into v_job from fenceline.job j where j.id = p_job_id;
  if v_held.waiting_for = 'approval' then
    v_others := (select s.approval_by_other from fenceline.setting s);
    v_reasons := v_reasons || fenceline.reason('approval',
      format('It has waited %s for approval%s.',
             fenceline.say_seconds(extract(epoch from fenceline.clock() - fenceline.id_time(p_job_id))),
             case when v_others and v_job.created_by is not null
                  then format(' by someone other than %s, who enqueued it', v_job.created_by) else '' end),
      fenceline.id_time(p_job_id), v_job.expires_at,
      jsonb_build_object('roles', array(
        select o.name from fenceline.role o where o.permissions && array['jobs:approve', '*'] order by 1 limit 20),
        'not_by', case when v_others then v_job.created_by end),
      array['fenceline jobs approve ' || v_id, 'fenceline jobs reject ' || v_id]);
  end if;
  if v_held.pending > 0 or v_held.waiting_for = 'dependencies' then
    v_ids := array(select d.after_id from fenceline.dependency d where d.waiter_id = p_job_id order by d.after_id limit c_named);
    v_seen := array(select fenceline.seen_job(i, p_tenant, p_created_by) from unnest(v_ids) i);
    v_reasons := v_reasons || fenceline.reason('dependencies',
      format(case when cardinality(v_job.after) = 1 then 'It waits for the job that it comes after: %3$s.'
                  else 'It waits for %1$s of the %2$s jobs that it comes after: %3$s.' end,
             v_held.pending, cardinality(v_job.after),
             case when exists (select 1 from unnest(v_ids) i where fenceline.is_live(i))
                  then fenceline.say_jobs(v_seen, v_held.pending)
                  else 'none of those looked at is on its way any more' end),
      fenceline.id_time(p_job_id), v_job.expires_at,
      jsonb_build_object('left', v_held.pending, 'of', cardinality(v_job.after), 'policy', v_job.after_policy, 'jobs', (
        select jsonb_agg(jsonb_build_object('id', fenceline.seen_job(i, p_tenant, p_created_by),
                                            'status', fenceline.job_status(i)) order by i)
        from unnest(v_ids) i where fenceline.seen_job(i, p_tenant, p_created_by) is not null)),
      array(select 'fenceline jobs explain ' || s from unnest(v_seen) s where s is not null limit 1));
  end if;
  if v_held.waiting_for = 'key' then
    v_ids := array(select k.job_id from fenceline.key_holder k where k.tenant = v_held.tenant and k.key = v_held.key
                   order by k.job_id limit c_named);
    select count(*) into v_count
    from (select 1 from fenceline.key_holder k where k.tenant = v_held.tenant and k.key = v_held.key limit c_counted) k;
    select count(*) into v_ahead from (
      (select 1 from fenceline.held h
       where h.waiting_for = 'key' and h.tenant = v_held.tenant and h.key = v_held.key and h.priority > v_held.priority
       limit c_counted)
      union all
      (select 1 from fenceline.held h
       where h.waiting_for = 'key' and h.tenant = v_held.tenant and h.key = v_held.key and h.priority = v_held.priority
         and h.seq < v_held.seq limit c_counted)
      limit c_counted) a;
    v_seen := array(select fenceline.seen_job(i, p_tenant, p_created_by) from unnest(v_ids) i);
    v_reasons := v_reasons || fenceline.reason('key',
      format('Jobs with the key %s run %s at a time: %s, and %s.', quote_literal(v_held.key), v_job.key_limit,
             case when v_count = 0 then 'it is about to be let through'
                  else format('it is held by %s', fenceline.say_jobs(v_seen, v_count)) end,
             case when v_ahead = 0 then 'this is the next' else format('%s wait before this one', v_ahead) end),
      fenceline.id_time(greatest(v_held.seq, p_job_id)), v_job.expires_at,
      jsonb_build_object('key', v_held.key, 'key_limit', v_job.key_limit, 'ahead', v_ahead, 'held', v_count, 'holders', (
        select jsonb_agg(jsonb_build_object('id', fenceline.seen_job(i, p_tenant, p_created_by),
                                            'status', fenceline.job_status(i)) order by i)
        from unnest(v_ids) i where fenceline.seen_job(i, p_tenant, p_created_by) is not null)),
      array(select 'fenceline jobs explain ' || s from unnest(v_seen) s where s is not null limit 1));
  end if;
  if v_held.waiting_for = 'signal' then
    select * into v_wait from fenceline.wait w where w.job_id = p_job_id;
    v_reasons := v_reasons || case when v_wait.due_at <= fenceline.clock() - interval '5 seconds'
      then fenceline.reason('wait_overdue',
        format('Its wait for signal %L was over %s ago, and no worker or server is up to let it go on.', v_wait.signal,
               fenceline.say_seconds(extract(epoch from fenceline.clock() - v_wait.due_at))),
        v_wait.since, v_wait.until, jsonb_build_object('signal', v_wait.signal),
        array['fenceline worker APP', 'fenceline sweep'])
      else fenceline.reason('signal',
        format('Its handler has waited %s for signal %L%s. It holds no slot.',
               fenceline.say_seconds(extract(epoch from fenceline.clock() - v_wait.since)), v_wait.signal,
               case when v_wait.until is null then ''
                    else format(', and waits %s more', fenceline.say_seconds(
                      greatest(extract(epoch from v_wait.until - fenceline.clock()), 0))) end),
        v_wait.since, v_wait.until, jsonb_build_object('signal', v_wait.signal, 'step', v_wait.step),
        array[format('fenceline jobs signal %s %s', v_id, v_wait.signal)]) end;
  end if;
  if cardinality(v_reasons) = 0 then
    v_reasons := array[fenceline.reason(v_held.waiting_for, format('It waits for %s.', v_held.waiting_for),
                                        fenceline.id_time(p_job_id))];
  end if;
  return v_reasons;
end;
$$;

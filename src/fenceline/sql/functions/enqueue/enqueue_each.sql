-- Enqueues many jobs of one kind in one statement, each with options of its own beside those of all; parameters as in enqueue.
--
-- p_each      the options of each job, in the order of p_args; stronger than p_options
-- Neighbours with the same lane, tenant, identity, delivery, parent and `after` are made together: what the kind, the lane and
-- the settings say is looked up once for all of them.
-- Returns the ids in the order of p_args. Raises as enqueue does, and FL007 when there are not as many options as args.
-- roles: producer, worker
create or replace function fenceline.enqueue_each(
  p_kind text,
  p_args json[],
  p_each json[],
  p_options json default '{}',
  p_actor text default null,
  p_defaults json default null,
  p_origin text default 'outside',
  out job_ids bigint[],
  out created boolean[]
)
language plpgsql security definer set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan as $$
declare
  v_options jsonb := fenceline.to_jsonb_checked(format('options of kind %L', p_kind), p_options);
  v_each jsonb := fenceline.to_jsonb_checked(format('options of kind %L', p_kind), array_to_json(p_each));
  v_run record;
  v_made record;
begin
  if coalesce(cardinality(p_each), 0) <> coalesce(cardinality(p_args), 0) then
    raise exception using errcode = 'FL007', message = format(
      '%s options for %s jobs: give each job its own, {} where it has none', coalesce(cardinality(p_each), 0),
      coalesce(cardinality(p_args), 0));
  end if;
  for v_run in
    with each_job as (
      select n, p_args[n] as args, o.options,
             o.options - array['priority', 'max_attempts', 'timeout', 'retry', 'key', 'key_limit', 'dedupe_key',
                               'dedupe_until', 'idempotency_key', 'resource_lock', 'run_at', 'run_in', 'expires_at',
                               'labels', 'group', 'needs_approval', 'snapshot', 'requires_hash', 'runner', 'traceparent',
                               'autocommit'] as shared
      from jsonb_array_elements(v_each) with ordinality e(given, n)
      cross join lateral (
        select v_options
               || case when v_options ? 'idempotency_key'  -- one key per job of the call, as in enqueue_many
                       then jsonb_build_object('idempotency_key', (v_options ->> 'idempotency_key') || '#' || e.n)
                       else '{}' end
               || e.given as options) o
    ), marked as (
      select *, (shared is distinct from lag(shared) over (order by n))::integer as begins from each_job
    ), numbered as (
      select *, sum(begins) over (order by n) as run from marked
    )
    select shared, array_agg(args order by n) as args, array_agg(options order by n) as options
    from numbered group by run, shared order by run
  loop
    v_made := fenceline.insert_jobs(p_kind, v_run.args, v_run.shared::json, p_actor, p_defaults,
                                    fenceline.public_origin(p_origin), null, v_run.options);
    job_ids := job_ids || v_made.job_ids;
    created := created || v_made.created;
  end loop;
end;
$$;

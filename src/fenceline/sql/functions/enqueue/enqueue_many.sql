-- Enqueues many jobs of one kind with the same options in one statement; parameters as in enqueue.
-- Returns the ids in the order of p_args; created is null when all are new.
-- roles: producer, worker
create or replace function fenceline.enqueue_many(
  p_kind text,
  p_args json[],
  p_options json default '{}',
  p_actor text default null,
  p_defaults json default null,
  p_origin text default 'outside',
  out job_ids bigint[],
  out created boolean[]
)
language sql security definer set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan as $$
  select m.job_ids, m.created from fenceline.insert_jobs(p_kind, p_args, p_options, p_actor, p_defaults,
                                                       fenceline.public_origin(p_origin)) m;
$$;

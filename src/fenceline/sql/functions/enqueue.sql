-- Enqueues one job in the caller's transaction.
--
-- p_kind      what to do; only this is required
-- p_args      a JSON object; json, not jsonb, so that \u0000 reaches us and gets an error of ours
-- p_options   lane priority run_at expires_at dedupe_key idempotency_key max_attempts labels resource_lock key key_limit
--             needs_approval snapshot requires_hash after identity tenant timeout retry group parent
-- p_actor     who enqueues it (created_by)
-- p_defaults  what the handler's decorator says: lane priority max_attempts retry timeout; weaker than p_options and
--             than the lane that lists the kind
-- p_origin    'outside', or 'child' / 'schedule', which a system drain lets through
-- Returns the job's public id, its internal id, and whether this call made it (false: deduplicated or repeated).
-- Raises FL001–FL009, FL013, FL014, FL020; then nothing has changed.
-- roles: producer, worker
create or replace function fenceline.enqueue(
  p_kind text,
  p_args json default '{}',
  p_options json default '{}',
  p_actor text default null,
  p_defaults json default null,
  p_origin text default 'outside',
  out id text,
  out job_id bigint,
  out created boolean
)
language plpgsql security definer set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan as $$
declare
  v_made record;
begin
  v_made := fenceline.insert_jobs(p_kind, array[p_args], p_options, p_actor, p_defaults, p_origin);
  job_id := v_made.job_ids[1];
  created := coalesce(v_made.created[1], true);
  id := fenceline.public_id(job_id);
end;
$$;

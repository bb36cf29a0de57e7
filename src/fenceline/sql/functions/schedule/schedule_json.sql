-- A schedule as JSON, with the time at which it was looked at.
-- roles: none
create or replace function fenceline.schedule_json(p_schedule fenceline.schedule) returns jsonb
language sql stable as $$
  select to_jsonb(p_schedule) - array['due_at', 'declared', 'last_job'] || jsonb_build_object(
    'tenant', coalesce(p_schedule.options ->> 'tenant', 'default'),
    'source', case when p_schedule.declared is null then 'operator' else 'code' end,
    'last_job', fenceline.public_id(p_schedule.last_job),
    'now', fenceline.clock());
$$;

-- Enqueues one job and returns it as the view `jobs` shows it: what HTTP answers with, in one round trip.
-- Parameters, and what it raises, as in enqueue; p_tenant is stronger than the options.
-- roles: producer, worker
create or replace function fenceline.submit_job(
  p_kind text,
  p_args json,
  p_options json,
  p_actor text,
  p_defaults json,
  p_tenant text,
  out id text,
  out created boolean,
  out job jsonb
)
language plpgsql security definer set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan as $$
declare
  v_made record;
begin
  -- No tenant is tenant `default`, and without options the enqueue is shorter.
  if p_tenant <> 'default' then
    p_options := (coalesce(p_options, '{}')::jsonb || jsonb_build_object('tenant', p_tenant))::json;
  end if;
  select * into v_made from fenceline.enqueue(p_kind, p_args, p_options, p_actor, p_defaults);
  id := fenceline.public_id(v_made.job_id);
  created := v_made.created;
  -- Nearly every new job is queued: with the status said, the plan has one arm of the view instead of all.
  select to_jsonb(v) - array['job_id', 'snapshot'] into job from fenceline.jobs v where v.job_id = v_made.job_id and v.status = 'queued';
  if not found then
    job := fenceline.describe_job(v_made.job_id);
  end if;
end;
$$;

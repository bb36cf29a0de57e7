-- As submit_job, for somebody who may see only the jobs of one actor: where a key finds a job of somebody else, it raises
-- FL072, tells nothing about that job, and nothing has changed.
--
-- p_created_by   the actor whose jobs he sees
-- roles: producer, worker
create or replace function fenceline.submit_visible_job(
  p_kind text,
  p_args json,
  p_options json,
  p_actor text,
  p_defaults json,
  p_tenant text,
  p_created_by text,
  out id text,
  out created boolean,
  out job jsonb
)
language plpgsql security definer set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan as $$
declare
  v_hidden boolean;
begin
  -- First, because a request that differs is told so (FL073) only to those who may know of the first one.
  v_hidden := exists (
    select 1 from fenceline.idempotency i join fenceline.job j on j.id = i.job_id
    where i.tenant = p_tenant and i.key = p_options ->> 'idempotency_key' and i.expires_at > fenceline.clock()
      and j.created_by is distinct from p_created_by);
  if not v_hidden then
    select s.id, s.created, s.job into submit_visible_job.id, submit_visible_job.created, submit_visible_job.job
    from fenceline.submit_job(p_kind, p_args, p_options, p_actor, p_defaults, p_tenant) s;
    v_hidden := not created and job ->> 'created_by' is distinct from p_created_by;
  end if;
  if v_hidden then
    raise exception using errcode = 'FL072',
      message = 'this dedupe key or idempotency key is taken by a job that is not yours to see: use another key';
  end if;
end;
$$;

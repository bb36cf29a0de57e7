-- Enqueues the job of a trigger, for a request whose signature has been checked; once per signature.
--
-- p_signature   of the request: seen again within twice the window, it is a replay; within a week, where the scheme signs no
--               time
-- p_args        as trigger_args made them, and as the handler has checked them where it is known
-- p_idempotency_key, p_dedupe_key   from the request's headers
-- Returns as submit_job. Raises FL047, FL049 (replay), and what an enqueue raises; then nothing has changed, and the
-- request may be sent again.
-- roles: admin
create or replace function fenceline.fire_trigger(
  p_name text,
  p_tenant text,
  p_signature bytea,
  p_args json,
  p_idempotency_key text default null,
  p_dedupe_key text default null,
  p_defaults json default null,
  out id text,
  out created boolean,
  out job jsonb
)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_trigger fenceline.trigger;
  v_now timestamptz := fenceline.clock();
  v_options jsonb;
begin
  select * into v_trigger from fenceline.trigger t where t.name = p_name and t.tenant = p_tenant and t.enabled;
  if not found then
    raise exception using errcode = 'FL047', message = format('trigger %L does not exist', left(p_name, 80));
  end if;
  -- Waits for a rival with the same signature, and then knows.
  insert into fenceline.trigger_seen (tenant, name, signature, until)
  values (p_tenant, p_name, p_signature,
          v_now + case v_trigger.scheme when 'github' then interval '7 days'
                                        else make_interval(secs => 2 * v_trigger.window_seconds) end)
  on conflict do nothing;
  if not found then
    raise exception using errcode = 'FL049', message = 'this very request has been accepted before';
  end if;
  v_options := v_trigger.options || jsonb_strip_nulls(jsonb_build_object(
    'idempotency_key', 'trigger:' || p_name || ':' || p_idempotency_key, 'dedupe_key', p_dedupe_key));
  select s.id, s.created, s.job into fire_trigger.id, fire_trigger.created, fire_trigger.job
  from fenceline.submit_visible_job(v_trigger.kind, p_args, v_options::json, 'trigger:' || p_name, p_defaults, p_tenant,
                                    'trigger:' || p_name) s;  -- who sends it, is told only of its own jobs
  if v_trigger.fired_at is null or v_trigger.fired_at < v_now - interval '1 minute' then  -- coarse, as of tokens
    update fenceline.trigger t set fired_at = v_now where t.name = p_name and t.tenant = p_tenant;
  end if;
end;
$$;

-- Names steps of a live attempt before they run, so that people see what is to come and in which order. Steps that are
-- there already keep what they are.
-- Raises FL012, FL007.
-- roles: worker
create or replace function fenceline.list_steps_ahead(p_job_id bigint, p_attempt_id uuid, p_names text[]) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform fenceline.check_step_name(n) from unnest(p_names) n;
  perform fenceline.live_attempt(p_job_id, p_attempt_id);
  insert into fenceline.step (job_id, name, position, status)
  select p_job_id, n.name, min(n.position), 'listed' from unnest(p_names) with ordinality n(name, position)
  group by n.name
  on conflict (job_id, name) do update set position = excluded.position;
end;
$$;

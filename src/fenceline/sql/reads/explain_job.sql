-- Why a job is where it is, as JSON: what it waits for, since when, and what would change that.
--
--   id, status           the job's
--   code, text           the first reason, for programs and for people
--   since, until         when that began, and when it is over (null: not known)
--   details              what the text is made of: holders, counts, workers …
--   commands             what to type
--   also                 further reasons, in the order in which they would come to bear, in the same form
--
-- p_tenant, p_created_by   who asks: bound to a tenant, to own jobs (null: neither). Jobs they may not see are counted, never named
-- p_sees_fleet             whether they may know workers by name
-- Looks at a bounded number of rows, by index, however much waits. Raises FL010 (missing, or not to be seen).
-- roles: producer, worker, reader
create or replace function fenceline.explain_job(
  p_job_id bigint,
  p_tenant text default null,
  p_created_by text default null,
  p_sees_fleet boolean default true
) returns jsonb
language plpgsql stable security definer set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set jit = off
as $$
declare
  v_job_id bigint := fenceline.visible_job_id(p_job_id, p_tenant, p_created_by);
  v_status text := fenceline.job_status(p_job_id);
  v_reasons jsonb[];
begin
  case
    when v_status is null then
      v_reasons := array[fenceline.reason('nowhere',
        'The job is neither on its way nor ended: a row of Fenceline''s tables is missing. Enqueue it again.',
        p_commands => array['fenceline doctor'])];
    when v_status = 'queued' then
      v_reasons := fenceline.explain_queued(v_job_id, p_tenant, p_created_by, p_sees_fleet);
    when v_status = 'scheduled' then v_reasons := array[fenceline.explain_timer(v_job_id)];
    when v_status in ('waiting', 'awaiting_approval') then
      v_reasons := fenceline.explain_held(v_job_id, p_tenant, p_created_by);
    when v_status in ('claimed', 'running') then
      v_reasons := fenceline.explain_running(v_job_id, p_tenant, p_created_by);
    else v_reasons := array[fenceline.explain_ended(v_job_id, p_tenant, p_created_by)];
  end case;
  if v_status in ('waiting', 'awaiting_approval', 'scheduled', 'queued')
     and (select s.draining from fenceline.setting s) then
    v_reasons := v_reasons || fenceline.reason('system_draining',
      'The system drains: new jobs from outside are refused. This one goes on all the same.',
      (select max(e.at) from (select e.at from fenceline.event e where e.subject = 'system' and e.action = 'system.drain'
                              order by e.id desc limit 1) e),
      p_commands => array['fenceline resume']);
  end if;
  return jsonb_build_object('id', fenceline.public_id(p_job_id), 'status', v_status) || v_reasons[1]
         || jsonb_build_object('also', to_jsonb(v_reasons[2:]));
end;
$$;

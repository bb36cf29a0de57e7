-- Approves a job that awaits approval; it goes on to its next gate. Returns its status afterwards.
-- Raises FL010, FL011, FL070 (the actor asked for it himself (is_own_request), and approval_by_other is on).
-- roles: admin
create or replace function fenceline.approve_job(
  p_job_id bigint,
  p_actor text default null,
  p_reason text default null,
  p_tenant text default null
) returns text
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_job fenceline.job := fenceline.find_job(p_job_id, p_tenant);
  v_held fenceline.held;
  v_after text;
begin
  select * into v_held from fenceline.held h where h.job_id = p_job_id and h.waiting_for = 'approval' for update;
  if not found then
    perform fenceline.wrong_status(p_job_id, 'approved', 'awaiting_approval');
  end if;
  if (select s.approval_by_other from fenceline.setting s) and fenceline.is_own_request(v_job, p_actor) then
    raise exception using errcode = 'FL070',
      message = format('job %s was asked for by %L, who cannot approve it: somebody else has to', fenceline.public_id(p_job_id),
                       p_actor),
      hint = 'Whoever works alone can switch this off: fenceline approval --by-anybody.';
  end if;
  if v_held.pending > 0 then
    update fenceline.held set waiting_for = 'dependencies' where job_id = p_job_id;
    perform fenceline.tell_followers(array[p_job_id]);
  else
    perform fenceline.release_held(array[row(
      v_held.job_id, v_held.seq, v_held.priority, v_held.lane, v_held.kind, v_held.tenant, v_held.number, v_held.token,
      v_held.deaths, v_held.uses, v_held.run_at)::fenceline.live]);
  end if;
  v_after := fenceline.job_status(p_job_id);
  perform fenceline.record_event(p_actor, 'job.approve', fenceline.public_id(p_job_id), v_job.tenant, p_reason,
    '{"status": "awaiting_approval"}', jsonb_build_object('status', v_after));
  return v_after;
end;
$$;

-- Moves a job that no worker holds to another lane; it keeps its priority and its place in time. Returns the lane it was in.
-- What it was enqueued with (`job.lane`) stays as it was said. Raises FL001, FL010, FL011 (a worker holds it, it has ended, or
-- the lane demands an approval that it was never asked for).
-- roles: admin
create or replace function fenceline.move_job(
  p_job_id bigint,
  p_lane text,
  p_actor text default null,
  p_reason text default null,
  p_tenant text default null
) returns text
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_job fenceline.job := fenceline.find_job(p_job_id, p_tenant);
  v_ready fenceline.ready;
  v_before text;
  v_needs_approval boolean;
begin
  select n.needs_approval into v_needs_approval from fenceline.lane n where n.name = p_lane;
  if not found then
    raise exception using errcode = 'FL001', message = format('lane %L does not exist', p_lane);
  end if;
  if v_needs_approval and v_job.needs_approval is not true and not starts_with(v_job.kind, 'fenceline.') then
    raise exception using errcode = 'FL011',
      message = format('job %s cannot be moved to lane %L, whose jobs need approval: it was enqueued without',
                       fenceline.public_id(p_job_id), p_lane),
      detail = fenceline.job_status(p_job_id), hint = 'Cancel it, and enqueue it in that lane.';
  end if;
  loop
    -- Its rank belongs to the lane: out of the one, into the other (see move_kinds).
    delete from fenceline.ready r where r.job_id = p_job_id returning r.* into v_ready;
    if found then
      v_before := v_ready.lane;
      perform fenceline.place_jobs(array[row(
        v_ready.job_id,
        fenceline.aged_seq(v_ready.seq, -coalesce(v_ready.own_priority, 0),
                           (select n.ageing_seconds from fenceline.lane n where n.name = v_ready.lane)),
        coalesce(v_ready.own_priority, v_ready.priority), p_lane, v_ready.kind, v_ready.tenant, v_ready.number,
        v_ready.token, v_ready.deaths, v_ready.uses, null)::fenceline.live]);
      exit;
    end if;
    update fenceline.timer t set lane = p_lane from fenceline.timer old
    where t.job_id = p_job_id and old.job_id = t.job_id returning old.lane into v_before;
    exit when found;
    update fenceline.held h set lane = p_lane from fenceline.held old
    where h.job_id = p_job_id and old.job_id = h.job_id returning old.lane into v_before;
    exit when found;
    if (fenceline.job_status(p_job_id) in ('queued', 'scheduled', 'waiting', 'awaiting_approval')) is not true then
      perform fenceline.wrong_status(p_job_id, 'moved', 'unclaimed');
    end if;
  end loop;
  perform fenceline.tell_followers(array[p_job_id]);
  perform fenceline.record_event(p_actor, 'job.move', fenceline.public_id(p_job_id), v_job.tenant, p_reason,
    jsonb_build_object('lane', v_before), jsonb_build_object('lane', p_lane));
  return v_before;
end;
$$;

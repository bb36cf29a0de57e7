-- Changes the priority of a job that no worker holds. Returns the priority it had. Raises FL003, FL010, FL011.
-- roles: admin
create or replace function fenceline.reprioritise_job(
  p_job_id bigint,
  p_priority integer,
  p_actor text default null,
  p_tenant text default null
) returns integer
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_job fenceline.job := fenceline.find_job(p_job_id, p_tenant);
  v_before integer;
  v_tenant text;
  v_key text;
begin
  if p_priority is null or p_priority not between -32768 and 32767 then
    raise exception using errcode = 'FL003',
      message = format('priority %s is out of range: use a whole number from -32768 to 32767', p_priority);
  end if;
  loop
    -- In a lane with ageing the rank moves by the difference (see place_jobs).
    update fenceline.ready r
    set priority = case when r.own_priority is null then p_priority else 0 end,
        own_priority = case when r.own_priority is not null then p_priority end,
        seq = case when r.own_priority is null then r.seq
                   else fenceline.aged_seq(r.seq, p_priority - r.own_priority,
                          (select n.ageing_seconds from fenceline.lane n where n.name = r.lane)) end
    from fenceline.ready old
    where r.job_id = p_job_id and old.job_id = r.job_id
    returning coalesce(old.own_priority, old.priority) into v_before;
    exit when found;
    update fenceline.timer t set priority = p_priority from fenceline.timer old
    where t.job_id = p_job_id and old.job_id = t.job_id returning old.priority into v_before;
    exit when found;
    update fenceline.held h set priority = p_priority from fenceline.held old
    where h.job_id = p_job_id and old.job_id = h.job_id returning old.priority, h.tenant, h.key into v_before, v_tenant, v_key;
    if found then
      if v_key is not null then
        perform fenceline.ask_for_keys(array[v_tenant], array[v_key]);  -- another may be first in its line now
      end if;
      exit;
    end if;
    if (fenceline.job_status(p_job_id) in ('queued', 'scheduled', 'waiting', 'awaiting_approval')) is not true then
      perform fenceline.wrong_status(p_job_id, 'reprioritised', 'unclaimed');
    end if;
  end loop;
  perform fenceline.tell_followers(array[p_job_id]);
  perform fenceline.record_event(p_actor, 'job.reprioritise', fenceline.public_id(p_job_id), v_job.tenant, null,
    jsonb_build_object('priority', v_before), jsonb_build_object('priority', p_priority));
  return v_before;
end;
$$;

-- Sends a signal to an unfinished job. The wait for that name goes on with it, now or whenever it begins; one wait takes one
-- signal, in the order in which they came.
--
-- p_payload      JSON, as large as a result at most
-- p_request_id   of the call: the same again (a reply was lost) changes nothing
-- Returns the job's status afterwards. Audited, without the payload.
-- Raises FL002 (name), FL005 (payload), FL010, FL011 (finished), FL023 (1000 signals wait to be taken).
-- roles: producer, worker
create or replace function fenceline.signal_job(
  p_job_id bigint,
  p_name text,
  p_payload jsonb default null,
  p_actor text default null,
  p_tenant text default null,
  p_request_id uuid default null
) returns text
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  c_most constant integer := 1000;
  v_job fenceline.job := fenceline.find_job(p_job_id, p_tenant);
begin
  perform fenceline.check_name('signal', p_name);
  perform fenceline.check_size(format('the payload of signal %L', p_name), p_payload);
  if exists (select 1 from fenceline.history h where h.job_id = p_job_id and h.final) then
    perform fenceline.wrong_status(p_job_id, 'signalled', 'unfinished');
  end if;
  if (select count(*) from (select 1 from fenceline.signal s where s.job_id = p_job_id and s.taken_at is null
                            limit c_most) k) = c_most then
    raise exception using errcode = 'FL023',
      message = format('job %s has %s signals that no wait has taken: no more are kept', fenceline.public_id(p_job_id), c_most);
  end if;
  insert into fenceline.signal (job_id, id, name, payload, sent_at, sent_by, request_id)
  values (p_job_id, fenceline.next_id(), p_name, p_payload, fenceline.clock(), p_actor, p_request_id)
  on conflict (job_id, request_id) where request_id is not null do nothing;
  if found then
    insert into fenceline.signal_check (id, job_id) values (fenceline.next_id(), p_job_id);
    perform fenceline.resume_signalled(array[p_job_id]);
    perform fenceline.record_event(p_actor, 'job.signal', fenceline.public_id(p_job_id), v_job.tenant, null, null,
                                   jsonb_build_object('signal', p_name));
  end if;
  return fenceline.job_status(p_job_id);
end;
$$;

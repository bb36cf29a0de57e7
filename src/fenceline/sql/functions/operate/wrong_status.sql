-- Raises FL011: a verb that the job's status does not allow. FL010, where the job has been deleted meanwhile.
-- roles: none
create or replace function fenceline.wrong_status(p_job_id bigint, p_verb text, p_allowed text) returns void
language plpgsql as $$
declare
  v_status text := fenceline.job_status(p_job_id);
begin
  perform fenceline.find_job(p_job_id, null);
  if v_status is null then
    raise exception using errcode = 'data_corrupted',
      message = format('job %s is in none of the tables that say where a job is', fenceline.public_id(p_job_id)),
      hint = 'Only Fenceline''s own functions may write to its tables. If they alone did, please report a bug.';
  end if;
  raise exception using errcode = 'FL011',
    message = format('job %s cannot be %s: it is %s, and must be %s', fenceline.public_id(p_job_id), p_verb, v_status,
                     p_allowed),
    detail = v_status;
end;
$$;

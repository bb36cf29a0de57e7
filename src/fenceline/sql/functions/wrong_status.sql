-- Raises FL011: a verb that the job's status does not allow.
-- roles: none
create or replace function fenceline.wrong_status(p_job_id bigint, p_verb text, p_allowed text) returns void
language plpgsql as $$
declare
  v_status text := fenceline.job_status(p_job_id);
begin
  raise exception using errcode = 'FL011',
    message = format('job %s cannot be %s: it is %s, and must be %s', fenceline.public_id(p_job_id), p_verb, v_status,
                     p_allowed),
    detail = v_status;
end;
$$;

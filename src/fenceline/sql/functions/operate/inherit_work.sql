-- Gives a new job the steps and the checkpoint of the one that it retries: what is done is not done again. What its waits took
-- is among the steps; signals that none of them took come along.
-- roles: none
create or replace function fenceline.inherit_work(p_from bigint, p_to bigint) returns void
language sql as $$
  insert into fenceline.step (job_id, name, position, status, args_hash, result, error, token, ran_seconds, ended_at)
  select p_to, s.name, s.position, s.status, s.args_hash, s.result, s.error, s.token, s.ran_seconds, s.ended_at
  from fenceline.step s where s.job_id = p_from;
  insert into fenceline.checkpoint (job_id, state, token, updated_at)
  select p_to, c.state, c.token, c.updated_at from fenceline.checkpoint c where c.job_id = p_from;
  insert into fenceline.signal (job_id, id, name, payload, sent_at, sent_by, request_id)
  select p_to, s.id, s.name, s.payload, s.sent_at, s.sent_by, s.request_id
  from fenceline.signal s where s.job_id = p_from and s.taken_at is null;
$$;

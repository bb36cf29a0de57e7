-- What a handler starts with that is not in the claim: the checkpoint and the finished steps of earlier attempts, and how
-- the jobs ended that it waited for. Workers ask for it only where there can be any of it.
-- Raises FL005 where that is more than one JSON value can be, 256 MiB.
-- roles: worker
create or replace function fenceline.attempt_start(p_job_id bigint) returns jsonb
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
begin
  return jsonb_build_object(
    'checkpoint', (select c.state from fenceline.checkpoint c where c.job_id = p_job_id),
    'steps', (select jsonb_object_agg(s.name, jsonb_build_object('args_hash', s.args_hash, 'result', s.result))
              from fenceline.step s where s.job_id = p_job_id and s.status = 'done'),
    'parents', (
      select jsonb_agg(jsonb_build_object(
               'id', fenceline.public_id(a.id), 'kind', j.kind, 'args', j.args, 'labels', j.labels,
               'status', h.outcome, 'result', h.result, 'error', h.error, 'errors', h.errors) order by a.id)
      from fenceline.job w cross join lateral unnest(w.after) a(id)
      left join fenceline.job j on j.id = a.id
      left join fenceline.history h on h.job_id = a.id and h.final
      where w.id = p_job_id));
exception when program_limit_exceeded then
  raise exception using errcode = 'FL005',
    message = format('the checkpoint, the steps and the parents of job %s have more than 256 MiB together',
                     fenceline.public_id(p_job_id)),
    hint = 'Store large data elsewhere and keep a reference.';
end;
$$;

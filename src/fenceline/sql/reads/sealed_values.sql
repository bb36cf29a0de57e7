-- What is stored encrypted, for `fenceline rekey`: of the next p_limit jobs after p_after, in the order of their ids; with p_after
-- null, the secrets of webhooks. A job without anything has one row all the same, so that the caller knows where it is.
--
-- source   job, history, log, step, signal, checkpoint, hook or trigger; value null: the job itself has nothing
-- place    which row of it, beside the job
-- value    its columns, of which one or more hold a sealed value
-- roles: worker
create or replace function fenceline.sealed_values(p_after bigint, p_limit integer)
returns table (job_id bigint, source text, place jsonb, value jsonb)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off as $$
declare
  v_ids bigint[];
  v_sealed constant text := '%"$sealed"%';
begin
  if p_after is null then
    return query
    select null::bigint, 'hook', jsonb_build_object('id', h.id),
           jsonb_build_object('secret', h.secret, 'previous_secret', h.previous_secret)
    from fenceline.hook h where h.secret like 'sealed:%' or h.previous_secret like 'sealed:%'
    union all
    select null, 'trigger', jsonb_build_object('tenant', t.tenant, 'name', t.name),
           jsonb_build_object('secret', t.secret, 'previous_secret', t.previous_secret)
    from fenceline.trigger t where t.secret like 'sealed:%' or t.previous_secret like 'sealed:%';
    return;
  end if;
  v_ids := array(select j.id from fenceline.job j where j.id > p_after order by j.id limit p_limit);
  return query
  select j.id, 'job', null::jsonb,
         case when j.args::text like '{"$sealed"%' then jsonb_build_object('args', j.args::jsonb) end
  from fenceline.job j where j.id = any(v_ids)
  union all
  select h.job_id, 'history', jsonb_build_object('attempt_id', h.attempt_id, 'final', h.final),
         jsonb_build_object('result', h.result, 'error', h.error, 'errors', h.errors)
  from fenceline.history h where h.job_id = any(v_ids) and h.final
    and (h.result::text like v_sealed or h.error::text like v_sealed or h.errors::text like v_sealed)
  union all
  select h.job_id, 'history', jsonb_build_object('attempt_id', h.attempt_id, 'final', h.final),
         jsonb_build_object('result', h.result, 'error', h.error, 'errors', h.errors)
  from fenceline.history h where h.job_id = any(v_ids) and not h.final
    and (h.result::text like v_sealed or h.error::text like v_sealed or h.errors::text like v_sealed)
  union all
  select l.job_id, 'log', jsonb_build_object('token', l.token, 'line', l.line),
         jsonb_build_object('message', l.message, 'fields', l.fields)
  from fenceline.log l where l.job_id = any(v_ids) and (l.message like 'sealed:%' or l.fields::text like v_sealed)
  union all
  select s.job_id, 'step', jsonb_build_object('name', s.name), jsonb_build_object('result', s.result, 'error', s.error)
  from fenceline.step s where s.job_id = any(v_ids) and (s.result::text like v_sealed or s.error::text like v_sealed)
  union all
  select s.job_id, 'signal', jsonb_build_object('id', s.id), jsonb_build_object('payload', s.payload)
  from fenceline.signal s where s.job_id = any(v_ids) and s.payload::text like v_sealed
  union all
  select c.job_id, 'checkpoint', null, jsonb_build_object('state', c.state)
  from fenceline.checkpoint c where c.job_id = any(v_ids) and c.state::text like v_sealed
  order by 1;
end;
$$;

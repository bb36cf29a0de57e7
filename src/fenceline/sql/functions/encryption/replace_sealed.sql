-- Puts values that were encrypted anew in place of the old ones, for `fenceline rekey`. A value that is not the old one any more
-- is left alone: whoever wrote it meanwhile used the newest key. Only sealed values can be replaced, by sealed values (FL007).
--
-- p_values   array of {"job_id", "source", "place", "old", "new"}, with source, place and value as sealed_values gave them
-- Returns how many rows were changed.
-- roles: worker
create or replace function fenceline.replace_sealed(p_values jsonb) returns integer
language plpgsql security definer set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off as $$
declare
  v_value record;
  v_count integer;
  v_changed integer := 0;
begin
  for v_value in
    select v.* from jsonb_to_recordset(p_values) v(job_id bigint, source text, place jsonb, old jsonb, new jsonb)
  loop
    if fenceline.without_tokens(v_value.old) is distinct from fenceline.without_tokens(v_value.new) then
      raise exception using errcode = 'FL007',
        message = format('a %s of job %s would change beyond its encryption', v_value.source, v_value.job_id);
    end if;
    case v_value.source
      when 'job' then
        update fenceline.job j set args = (v_value.new -> 'args')::json
        where j.id = v_value.job_id and j.args::text like '{"$sealed"%' and j.args::jsonb = v_value.old -> 'args';
      when 'history' then
        update fenceline.history h
        set result = nullif(v_value.new -> 'result', 'null'), error = nullif(v_value.new -> 'error', 'null'),
            errors = nullif(v_value.new -> 'errors', 'null')
        where h.job_id = v_value.job_id and h.final = (v_value.place -> 'final')::boolean
          and h.attempt_id is not distinct from (v_value.place ->> 'attempt_id')::uuid
          and jsonb_build_object('result', h.result, 'error', h.error, 'errors', h.errors) = v_value.old;
      when 'log' then
        update fenceline.log l set message = v_value.new ->> 'message', fields = nullif(v_value.new -> 'fields', 'null')
        where l.job_id = v_value.job_id and l.token = (v_value.place -> 'token')::bigint
          and l.line = (v_value.place -> 'line')::integer
          and jsonb_build_object('message', l.message, 'fields', l.fields) = v_value.old;
      when 'step' then
        update fenceline.step s
        set result = nullif(v_value.new -> 'result', 'null'), error = nullif(v_value.new -> 'error', 'null')
        where s.job_id = v_value.job_id and s.name = v_value.place ->> 'name'
          and jsonb_build_object('result', s.result, 'error', s.error) = v_value.old;
      when 'signal' then
        update fenceline.signal s set payload = v_value.new -> 'payload'
        where s.job_id = v_value.job_id and s.id = (v_value.place -> 'id')::bigint and s.payload = v_value.old -> 'payload';
      when 'checkpoint' then
        update fenceline.checkpoint c set state = v_value.new -> 'state'
        where c.job_id = v_value.job_id and c.state = v_value.old -> 'state';
      when 'hook' then
        update fenceline.hook h
        set secret = v_value.new ->> 'secret', previous_secret = v_value.new ->> 'previous_secret'
        where h.id = (v_value.place -> 'id')::integer
          and jsonb_build_object('secret', h.secret, 'previous_secret', h.previous_secret) = v_value.old;
      when 'trigger' then
        update fenceline.trigger t
        set secret = v_value.new ->> 'secret', previous_secret = v_value.new ->> 'previous_secret'
        where t.tenant = v_value.place ->> 'tenant' and t.name = v_value.place ->> 'name'
          and jsonb_build_object('secret', t.secret, 'previous_secret', t.previous_secret) = v_value.old;
      else
        raise exception using errcode = 'FL007', message = format('%L holds nothing sealed', v_value.source);
    end case;
    get diagnostics v_count = row_count;
    v_changed := v_changed + v_count;
  end loop;
  return v_changed;
end;
$$;

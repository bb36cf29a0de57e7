-- Appends lines to the log of a live attempt. Returns false when the attempt is stale; then nothing is written.
--
-- p_lines     JSON array of {"message", "level", "fields", "ago_seconds"}; lines are numbered per attempt. A message, or
--             fields, over the limit (setting max_log_bytes) are cut and marked. Of one attempt so many bytes are kept
--             (setting max_attempt_log_bytes); then a last line says so.
-- p_offset    how many lines of this attempt were sent before these. Lines that are there already are not written again:
--             a reply was lost. Null: all of them are new
-- roles: worker
create or replace function fenceline.write_log(p_job_id bigint, p_attempt_id uuid, p_lines jsonb,
                                               p_offset integer default null) returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_now timestamptz := fenceline.clock();
  v_token bigint;
  v_last integer;
  v_known integer;   -- of these lines, so many are there
  v_most integer;
  v_attempt_most integer;
  v_bytes integer;   -- with these lines
  v_before integer;
begin
  select s.max_log_bytes, s.max_attempt_log_bytes into v_most, v_attempt_most from fenceline.setting s;
  if jsonb_typeof(p_lines) is distinct from 'array' or jsonb_path_exists(p_lines,
       '$[*] ? (@.type() != "object" || (@.ago_seconds.type() != "number" && @.ago_seconds.type() != "null")
                || @.ago_seconds < 0 || @.ago_seconds > 1000000000)') then
    raise exception using errcode = 'FL007',
      message = format('lines %s are not valid: use a JSON array of objects with "message", "level", "fields" and '
                       '"ago_seconds" (0 or more)', left(p_lines::text, 80));
  end if;
  -- The update is fence and lock in one: a reclaim waits for us, or we find nothing.
  update fenceline.running r
  set active_at = v_now, log_bytes = least(coalesce(r.log_bytes, 0)::bigint + octet_length(p_lines::text), 2000000000)
  where r.job_id = p_job_id and r.attempt_id = p_attempt_id returning r.token, r.log_bytes into v_token, v_bytes;
  if not found then
    return false;
  end if;
  v_before := v_bytes - octet_length(p_lines::text);
  if v_before > v_attempt_most then
    return true;  -- its last line is written
  end if;
  select coalesce(max(l.line), 0) into v_last from fenceline.log l where l.job_id = p_job_id and l.token = v_token;
  v_known := coalesce(greatest(v_last - p_offset, 0), 0);
  insert into fenceline.log (job_id, token, line, at, level, message, fields)
  select p_job_id, v_token, v_last - v_known + l.n,
         v_now - make_interval(secs => coalesce((l.v ->> 'ago_seconds')::float8, 0)),
         left(coalesce(l.v ->> 'level', 'info'), 20),
         -- The limit is in bytes; a character has up to four.
         case when octet_length(l.v ->> 'message') > v_most
              then left(l.v ->> 'message', case when octet_length(l.v ->> 'message') = length(l.v ->> 'message')
                                                then v_most else v_most / 4 end) || ' … [cut]' else coalesce(l.v ->> 'message', '') end,
         case when octet_length((l.v -> 'fields')::text) > v_most
              then jsonb_build_object('cut', left((l.v -> 'fields')::text, v_most / 4)) else nullif(l.v -> 'fields', 'null') end
  from (select e.v, e.n, sum(octet_length(e.v::text)) over (order by e.n) as bytes
        from jsonb_array_elements(p_lines) with ordinality e(v, n)) l
  where v_before + l.bytes <= v_attempt_most and l.n > v_known;
  if v_bytes > v_attempt_most then
    insert into fenceline.log (job_id, token, line, at, level, message)
    select p_job_id, v_token, coalesce(max(l.line), 0) + 1, v_now, 'warning',
           format('the log of this attempt is over its limit of %s bytes: further lines are not kept', v_attempt_most)
    from fenceline.log l where l.job_id = p_job_id and l.token = v_token;
  end if;
  if v_known < jsonb_array_length(p_lines) and exists (select 1 from fenceline.follow) then
    perform fenceline.tell_followers(array[p_job_id], v_token, v_last + 1, (
      select max(l.line) from fenceline.log l where l.job_id = p_job_id and l.token = v_token));
  end if;
  return true;
end;
$$;

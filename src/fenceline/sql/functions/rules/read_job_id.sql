-- A job id in JSON: a public id (string) or an internal one (whole number); null when there is none. Raises FL017.
-- roles: none
create or replace function fenceline.read_job_id(p_id jsonb) returns bigint
language plpgsql immutable parallel safe as $$
begin
  case jsonb_typeof(p_id)
    when 'string' then
      return fenceline.parse_public_id(p_id #>> '{}');
    when 'number' then
      if p_id::numeric = trunc(p_id::numeric) and p_id::numeric between 0 and 9223372036854775807 then
        return p_id::numeric::bigint;
      end if;
    else
      if p_id is null then
        return null;
      end if;
  end case;
  raise exception using errcode = 'FL017',
    message = format('%s is not a job id: use a public id, or an internal one as a whole number', left(p_id::text, 80));
end;
$$;

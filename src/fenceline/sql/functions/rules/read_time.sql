-- An option that must be a moment: an ISO 8601 string with a zone, or null when it is not there.
-- roles: none
create or replace function fenceline.read_time(p_options jsonb, p_name text) returns timestamptz
language plpgsql stable as $$
declare
  v_value text := p_options ->> p_name;
begin
  if v_value is null then
    return null;
  end if;
  -- The zone must be said: without it the moment would depend on the session's TimeZone.
  if v_value !~ '^\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?\s*(Z|[+-]\d\d(:?\d\d)?)$' then
    raise exception using errcode = 'FL007',
      message = format('%s %L is not a moment: use ISO 8601 with a zone, like 2026-01-31T12:00:00Z', p_name,
                       left(v_value, 80));
  end if;
  return v_value::timestamptz;
exception when datetime_field_overflow or invalid_datetime_format or invalid_time_zone_displacement_value then
  raise exception using errcode = 'FL007',
    message = format('%s %L is not a moment: %s', p_name, left(v_value, 80), sqlerrm);
end;
$$;

-- Raises FL003, FL004 or FL007 unless what a decorator says (p_defaults of enqueue) can be read: its numbers are cast
-- without a further look. The lane's name is checked where the lane is made.
-- roles: none
create or replace function fenceline.check_defaults(p_kind text, p_defaults json) returns void
language plpgsql immutable as $$
begin
  if json_typeof(p_defaults) not in ('object', 'null') then
    raise exception using errcode = 'FL007', message = format('defaults of kind %L must be a JSON object', p_kind);
  end if;
  if p_defaults ->> 'priority' is not null then
    perform fenceline.read_integer(p_defaults::jsonb, 'priority', -32768, 32767, 'FL003');
  end if;
  if p_defaults ->> 'max_attempts' is not null then
    perform fenceline.read_integer(p_defaults::jsonb, 'max_attempts', 1, 1000, 'FL004');
  end if;
  if coalesce(json_typeof(p_defaults -> 'needs_approval'), 'null') not in ('boolean', 'null') then
    raise exception using errcode = 'FL007',
      message = format('needs_approval %s of kind %L is not a boolean', p_defaults -> 'needs_approval', p_kind);
  end if;
  if p_defaults ->> 'timeout' is not null then
    perform fenceline.read_seconds(p_defaults::jsonb, 'timeout');
  end if;
end;
$$;

-- Raises FL031 unless the value is a list of windows: {"days": "mon-fri,sun", "from": "22:00", "to": "04:00"}, days may be
-- left out. A window that ends before it begins goes on into the next day.
-- roles: none
create or replace function fenceline.check_windows(p_name text, p_windows jsonb) returns void
language plpgsql immutable as $$
declare
  v_day constant text := '(mon|tue|wed|thu|fri|sat|sun)(-(mon|tue|wed|thu|fri|sat|sun))?';
  v_window jsonb;
begin
  if jsonb_typeof(p_windows) <> 'array' or jsonb_array_length(p_windows) > 100 then
    raise exception using errcode = 'FL031',
      message = format('windows of schedule %L must be a list of at most 100', p_name);
  end if;
  for v_window in select e from jsonb_array_elements(p_windows) e loop
    if jsonb_typeof(v_window) <> 'object' or v_window - array['days', 'from', 'to'] <> '{}'
       or coalesce(v_window ->> 'from', '') !~ '^([01]\d|2[0-3]):[0-5]\d$'
       or coalesce(v_window ->> 'to', '') !~ '^(([01]\d|2[0-3]):[0-5]\d|24:00)$'
       or v_window ->> 'from' = v_window ->> 'to'
       or coalesce(v_window ->> 'days', 'mon-sun') !~ ('^' || v_day || '(,' || v_day || ')*$') then
      raise exception using errcode = 'FL031',
        message = format('window %s of schedule %L is not valid', left(v_window::text, 200), p_name),
        hint = 'Use {"days": "mon-fri", "from": "22:00", "to": "04:00"}; a whole day is "00:00" to "24:00".';
    end if;
  end loop;
end;
$$;

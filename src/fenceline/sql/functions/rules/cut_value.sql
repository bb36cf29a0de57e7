-- A value as a list shows it: itself, or {"$cut": {"bytes": …}} where it is longer than p_most bytes; null: never. The code
-- and the beginning of the message of an error stay.
-- roles: none
create or replace function fenceline.cut_value(p_value jsonb, p_most integer) returns jsonb
language sql immutable as $$
  select case
    when p_most is null or p_value is null or octet_length(p_value::text) <= p_most then p_value
    else jsonb_build_object('$cut', jsonb_build_object('bytes', octet_length(p_value::text))) || case
      when jsonb_typeof(p_value) = 'object' and p_value ? 'message'
      then jsonb_strip_nulls(jsonb_build_object('code', left(p_value ->> 'code', 100), 'type', left(p_value ->> 'type', 100),
                                                'message', left(p_value ->> 'message', 500)))
      else '{}' end
  end;
$$;

-- Labels: a JSON object of at most 32 strings, names and values up to 256 characters; null when empty.
-- roles: none
create or replace function fenceline.read_labels(p_labels jsonb) returns jsonb
language plpgsql immutable as $$
declare
  v_bad text;
begin
  if jsonb_typeof(p_labels) <> 'object' then
    raise exception using errcode = 'FL007', message = 'labels must be a JSON object of strings';
  end if;
  select format('label %L is not valid: use at most 32 labels, names and string values of 1 to 256 characters', l.key)
    into v_bad
  from jsonb_each(p_labels) with ordinality l(key, value, n)
  where jsonb_typeof(l.value) <> 'string' or length(l.key) not between 1 and 256
     or length(l.value #>> '{}') not between 1 and 256 or l.n > 32
  limit 1;
  if v_bad is not null then
    raise exception using errcode = 'FL007', message = v_bad;
  end if;
  return nullif(p_labels, '{}');
end;
$$;

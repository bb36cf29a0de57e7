-- JSON in one fixed spelling: keys in code point order, no white space, numbers without trailing zeros.
-- roles: none
create or replace function fenceline.canonical_json(p_value jsonb) returns text
language sql immutable strict parallel safe as $$
  select case jsonb_typeof(p_value)
    when 'object' then '{' || coalesce((
      select string_agg(to_json(e.key)::text || ':' || fenceline.canonical_json(e.value), ',' order by e.key collate "C")
      from jsonb_each(p_value) e), '') || '}'
    when 'array' then '[' || coalesce((
      select string_agg(fenceline.canonical_json(e.value), ',' order by e.ordinality)
      from jsonb_array_elements(p_value) with ordinality e(value, ordinality)), '') || ']'
    when 'number' then trim_scale((p_value #>> '{}')::numeric)::text
    else p_value::text end;
$$;

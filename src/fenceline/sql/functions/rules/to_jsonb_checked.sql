-- JSON → jsonb, with an error of ours for what jsonb cannot hold (\u0000, lone surrogates), for broken JSON, and for a number
-- of a few bytes that becomes thousands of digits.
-- roles: none
create or replace function fenceline.to_jsonb_checked(p_what text, p_value json) returns jsonb
language plpgsql immutable as $$
declare
  v_value jsonb;
  v_why text;
begin
  v_value := p_value::jsonb;
  if p_value::text ~ '[eE][-+]?[0-9]{4}'
     and regexp_replace(p_value::text, '"(\\.|[^"\\])*"', '', 'g') ~ '[eE][-+]?[0-9]{4}' then  -- not in a string
    raise exception using errcode = 'numeric_value_out_of_range',
      message = 'a number has an exponent of four digits or more';
  end if;
  return v_value;
exception when data_exception or statement_too_complex then
  get stacked diagnostics v_why = pg_exception_detail;
  raise exception using errcode = 'FL006',
    message = format('%s cannot be stored as JSON: %s', p_what, coalesce(nullif(v_why, ''), sqlerrm)),
    hint = 'Remove \u0000, unpaired surrogates and numbers without end; encode binary data as base64.';
end;
$$;

-- JSON → jsonb, with an error of ours for what jsonb cannot hold (\u0000, lone surrogates) and for broken JSON.
-- roles: none
create or replace function fenceline.to_jsonb_checked(p_what text, p_value json) returns jsonb
language plpgsql immutable as $$
declare
  v_why text;
begin
  return p_value::jsonb;
exception when data_exception or statement_too_complex then
  get stacked diagnostics v_why = pg_exception_detail;
  raise exception using errcode = 'FL006',
    message = format('%s cannot be stored as JSON: %s', p_what, coalesce(nullif(v_why, ''), sqlerrm)),
    hint = 'Remove \u0000 and unpaired surrogates; encode binary data as base64.';
end;
$$;

-- Raises FL005 for a value over the limit for results.
-- roles: none
create or replace function fenceline.check_size(p_what text, p_value jsonb) returns void
language plpgsql stable as $$
declare
  v_most integer := (select s.max_result_bytes from fenceline.setting s);
begin
  if pg_column_size(p_value) > v_most then
    raise exception using errcode = 'FL005',
      message = format('%s has %s bytes: at most %s are allowed', p_what, pg_column_size(p_value), v_most),
      hint = 'Store large data elsewhere and keep a reference.';
  end if;
end;
$$;

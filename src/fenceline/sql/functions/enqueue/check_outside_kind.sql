-- Raises FL002 when a kind is Fenceline's own: such jobs are made and run by Fenceline alone.
-- roles: none
create or replace function fenceline.check_outside_kind(p_kind text) returns void
language plpgsql immutable as $$
begin
  if starts_with(p_kind, 'fenceline.') then
    raise exception using errcode = 'FL002',
      message = format('kind %L is Fenceline''s own: names that begin with "fenceline." are not for other jobs', p_kind);
  end if;
end;
$$;

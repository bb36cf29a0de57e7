-- Raises FL007 unless a text can name a step: 1 to 200 characters.
-- roles: none
create or replace function fenceline.check_step_name(p_name text) returns void
language plpgsql immutable as $$
begin
  if p_name is null or length(p_name) not between 1 and 200 then
    raise exception using errcode = 'FL007',
      message = format('step name %L is not valid: use 1 to 200 characters', left(p_name, 80));
  end if;
end;
$$;

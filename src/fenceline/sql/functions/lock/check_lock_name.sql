-- Raises FL002 for a namespace and FL007 for a name that is none.
-- roles: none
create or replace function fenceline.check_lock_name(p_namespace text, p_name text) returns void
language plpgsql as $$
begin
  perform fenceline.check_name('lock namespace', p_namespace);
  if p_name is null or length(p_name) not between 1 and 200 then
    raise exception using errcode = 'FL007',
      message = format('lock name %L is not valid: use 1 to 200 characters', left(p_name, 80));
  end if;
end;
$$;

-- Whom a job is meant for, checked: the name of a worker or runner, or an object of labels that it must have.
-- roles: none
create or replace function fenceline.read_runner(p_runner jsonb) returns jsonb
language plpgsql immutable as $$
begin
  if jsonb_typeof(p_runner) = 'object' then
    return fenceline.read_labels(p_runner);
  elsif jsonb_typeof(p_runner) <> 'string' or length(p_runner #>> '{}') not between 1 and 200 then
    raise exception using errcode = 'FL007',
      message = format('runner %s is not valid: use a name of 1 to 200 characters, or an object of labels',
                       left(p_runner::text, 80));
  end if;
  return p_runner;
end;
$$;

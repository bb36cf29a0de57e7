-- Raises FL007 unless an "after" option has one of the shapes that after_list knows.
-- roles: none
create or replace function fenceline.check_after(p_after jsonb) returns void
language plpgsql immutable as $$
begin
  if jsonb_typeof(p_after) not in ('array', 'object', 'string', 'number')
     or (jsonb_typeof(p_after) = 'object'
         and (p_after - array['jobs', 'group', 'policy'] <> '{}'
              or coalesce(jsonb_typeof(p_after -> 'jobs'), 'null') not in ('array', 'null')
              or coalesce(jsonb_typeof(p_after -> 'group'), 'null') not in ('string', 'null')
              or num_nonnulls(p_after ->> 'jobs', p_after ->> 'group') = 0)) then
    raise exception using errcode = 'FL007',
      message = format('after %s is not valid: use a list of job ids, or an object with "jobs" (a list), "group" (a name) '
                       'and "policy"', left(p_after::text, 200));
  end if;
end;
$$;

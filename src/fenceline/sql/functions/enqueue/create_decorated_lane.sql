-- A lane that is not there: created when a decorator named it (no worker has come first), else FL001.
-- roles: none
create or replace function fenceline.create_decorated_lane(p_lane text, p_decorated boolean) returns void
language plpgsql as $$
begin
  if p_decorated is not true then
    raise exception using errcode = 'FL001',
      message = format('lane %L does not exist: create it, or leave lane out', p_lane);
  end if;
  perform fenceline.check_name('lane', p_lane);
  insert into fenceline.lane (name) values (p_lane) on conflict do nothing;
end;
$$;

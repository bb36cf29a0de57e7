-- The id itself, if it is a runner of p_owner's that has not signed off and was not taken for dead.
-- Raises FL065 for a runner that is missing or somebody else's, alike; FL015 when its lease is over.
-- roles: worker
create or replace function fenceline.own_runner(p_runner_id integer, p_owner text) returns integer
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_stopped_at timestamptz;
begin
  select w.stopped_at into v_stopped_at from fenceline.worker w
  where w.id = p_runner_id and w.runner and w.owner = p_owner;
  if not found then
    raise exception using errcode = 'FL065', message = format('runner %s does not exist: register one', p_runner_id);
  end if;
  if v_stopped_at is not null then
    raise exception using errcode = 'FL015',
      message = format('runner %s has signed off, or its lease is over: register again', p_runner_id);
  end if;
  return p_runner_id;
end;
$$;

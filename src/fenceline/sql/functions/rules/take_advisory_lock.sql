-- Takes an advisory lock until the transaction ends; false when somebody else keeps it for a second. Whoever may connect can
-- hold any of them for ever, without a right on anything of ours, and must not be able to stop the fleet with that: the
-- caller goes on with something else and comes back. `fenceline doctor` says who it is.
-- A session that has waited in vain only tries for the next ten seconds, or until it gets the lock: a worker that comes back to
-- a kept lane at every poll would else wait most of the time, and all its other lanes with it. A setting of the session keeps
-- that in mind.
-- roles: none
create or replace function fenceline.take_advisory_lock(p_class integer, p_number integer, p_shared boolean default false)
returns boolean
language plpgsql as $$
declare
  c_setting constant text := 'fenceline.kept_' || to_hex(p_class) || '_' || to_hex(p_number);
begin
  if (case when p_shared then pg_try_advisory_xact_lock_shared(p_class, p_number)
           else pg_try_advisory_xact_lock(p_class, p_number) end) then
    if current_setting(c_setting, true) <> '' then
      perform set_config(c_setting, '', false);
    end if;
    return true;
  end if;
  if nullif(current_setting(c_setting, true), '')::double precision > extract(epoch from clock_timestamp()) then
    return false;
  end if;
  if fenceline.await_advisory_lock(p_class, p_number, p_shared, interval '1 second', current_setting('lock_timeout')) then
    return true;
  end if;
  perform set_config(c_setting, (extract(epoch from clock_timestamp()) + 10)::text, false);
  return false;
end;
$$;

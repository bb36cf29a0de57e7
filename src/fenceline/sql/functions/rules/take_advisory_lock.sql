-- Takes an advisory lock until the transaction ends; false when somebody else keeps it for a second. Whoever may connect can
-- hold any of them for ever, without a right on anything of ours, and must not be able to stop the fleet with that: the
-- caller goes on with something else and comes back. `fenceline doctor` says who it is.
-- roles: none
create or replace function fenceline.take_advisory_lock(p_class integer, p_number integer, p_shared boolean default false)
returns boolean
language plpgsql as $$
begin
  if p_shared then
    if pg_try_advisory_xact_lock_shared(p_class, p_number) then
      return true;
    end if;
  elsif pg_try_advisory_xact_lock(p_class, p_number) then
    return true;
  end if;
  return fenceline.await_advisory_lock(p_class, p_number, p_shared, interval '1 second', current_setting('lock_timeout'));
end;
$$;

-- The slow half of take_advisory_lock: its setting and its subtransaction are paid for only by those who must wait. A session that
-- waits for locks less long than p_most (its own lock_timeout, p_own) is obeyed. False: it was not to be had.
-- roles: none
create or replace function fenceline.await_advisory_lock(p_class integer, p_number integer, p_shared boolean,
                                                         p_most interval, p_own text) returns boolean
language plpgsql set lock_timeout = 0 as $$
begin
  perform set_config('lock_timeout', extract(epoch from least(nullif(p_own::interval, interval '0'), p_most)) * 1000 || 'ms', true);
  if p_shared then
    perform pg_advisory_xact_lock_shared(p_class, p_number);
  else
    perform pg_advisory_xact_lock(p_class, p_number);
  end if;
  return true;
exception when lock_not_available then
  return false;
end;
$$;

-- Takes the advisory lock of an operator's verb, or says after 10 s (less where the session's own lock_timeout is shorter) that somebody
-- keeps it: 55P03. Whoever may connect could keep it for ever.
-- roles: none
create or replace function fenceline.take_verb_lock(p_class integer, p_number integer) returns void
language plpgsql as $$
begin
  if not (pg_try_advisory_xact_lock(p_class, p_number)
          or fenceline.await_advisory_lock(p_class, p_number, false, interval '10 seconds', current_setting('lock_timeout'))) then
    raise exception using errcode = 'lock_not_available',
      message = 'somebody else keeps the lock that this needs',
      hint = 'Try again; `fenceline doctor` says who it is.';
  end if;
end;
$$;

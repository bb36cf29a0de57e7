-- Refuses any other isolation than READ COMMITTED (FL016). For functions that take a lock and then count or look again:
-- elsewhere they would see what was there before the lock, and exceed a limit or overlook a job.
-- roles: none
create or replace function fenceline.require_read_committed(p_function text) returns void
language plpgsql as $$
begin
  if current_setting('transaction_isolation') not in ('read committed', 'read uncommitted') then  -- the same in PostgreSQL
    raise exception using errcode = 'FL016',
      message = format('%s runs in READ COMMITTED only, not in %s: what it counts could be out of date', p_function,
                       upper(current_setting('transaction_isolation'))),
      hint = 'Set default_transaction_isolation to ''read committed'' for the session, the role or the database.';
  end if;
end;
$$;

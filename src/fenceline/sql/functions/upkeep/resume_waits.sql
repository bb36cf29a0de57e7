-- Lets jobs go on whose wait for a signal is over: those whose time has come, and those where a signal and the wait were
-- written at the same time and did not see each other. Both sides ask for this look, so that the later of the two has it
-- after its commit. A job that somebody is changing is looked at again; where a look ends at p_limit, what it left goes to
-- the end of the line, so that the others have their turn. Returns how many went on.
-- roles: none
create or replace function fenceline.resume_waits(p_limit integer default 1000) returns integer
language plpgsql as $$
declare
  v_checks bigint[];
  v_due bigint[];
  v_count integer;
begin
  v_checks := array(select c.id from fenceline.signal_check c order by c.id limit p_limit for update skip locked);
  v_due := array(select w.job_id from fenceline.wait w where w.due_at <= fenceline.clock()
                 order by w.due_at limit p_limit for update skip locked);
  if cardinality(v_checks) = 0 and cardinality(v_due) = 0 then
    return 0;
  end if;
  v_count := fenceline.resume_signalled(
    v_due || array(select c.job_id from fenceline.signal_check c where c.id = any(v_checks)));
  delete from fenceline.signal_check c where c.id = any(v_checks) and not exists (
    select 1 from fenceline.held h join fenceline.wait w on w.job_id = h.job_id
    where h.job_id = c.job_id and h.waiting_for = 'signal' and fenceline.has_news(w));
  update fenceline.wait w set due_at = null  -- cancelled, say
  where w.job_id = any(v_due) and not exists (
    select 1 from fenceline.held h where h.job_id = w.job_id and h.waiting_for = 'signal');
  if cardinality(v_checks) = p_limit then
    update fenceline.signal_check c set id = fenceline.next_id() where c.id = any(v_checks);
  end if;
  if cardinality(v_due) = p_limit then
    update fenceline.wait w set due_at = fenceline.clock() where w.job_id = any(v_due) and w.due_at is not null;
  end if;
  return v_count;
end;
$$;

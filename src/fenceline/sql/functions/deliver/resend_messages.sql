-- Messages that no claim has answered within p_seconds count as lost: their jobs, where they still wait, are sent again by whoever
-- calls take_messages next. Returns how many such jobs there were; wakes the workers of their lanes.
-- roles: none
create or replace function fenceline.resend_messages(p_seconds double precision default 2, p_limit integer default 1000)
returns integer
language plpgsql as $$
declare
  v_lost record;
begin
  with lost as (
    delete from fenceline.message where job_id = any(array(
      select m.job_id from fenceline.message m
      where m.sent_at <= fenceline.clock() - make_interval(secs => p_seconds)
      limit p_limit for update skip locked))
    returning job_id, lane
  )
  select count(*) as jobs, array_agg(distinct l.lane) as lanes into v_lost
  from lost l where exists (select 1 from fenceline.ready r where r.job_id = l.job_id);
  if v_lost.lanes is not null then
    perform fenceline.wake(v_lost.lanes);
  end if;
  return v_lost.jobs;
end;
$$;

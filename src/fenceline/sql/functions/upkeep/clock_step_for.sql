-- How far the clock was set since maintenance ran last: negative, it was set back; null, it was not, as far as can be told.
--
-- p_ran_at    when maintenance ran last, anywhere
-- p_visitor   as who this session looks: what it remembers of one is not told to another
-- A last run that lies ahead says it all. A clock that was set forward looks like a fleet that slept, so it is judged by this
-- session: it was here before the gap, has not looked so rarely before, and no worker has a heartbeat from within the gap.
-- Whoever has just connected cannot tell, and takes the clock at its word. Call it once per visit: it notes how often this
-- session comes.
-- roles: none
create or replace function fenceline.clock_step_for(p_ran_at timestamptz, p_visitor text) returns interval
language plpgsql as $$
declare
  v_now timestamptz := fenceline.clock();
  v_seen timestamptz := to_timestamp(nullif(current_setting(p_visitor || '.seen_at', true), '')::double precision);
  v_usual interval := make_interval(secs =>  -- the longest of the last gaps
    nullif(current_setting(p_visitor || '.usual_gap_seconds', true), '')::double precision);
  v_last timestamptz := greatest(p_ran_at, v_seen);
begin
  perform set_config(p_visitor || '.seen_at', extract(epoch from v_now)::text, false);
  if v_now >= v_seen then
    perform set_config(p_visitor || '.usual_gap_seconds',
                       extract(epoch from greatest(v_now - v_seen, 0.8 * v_usual))::text, false);
  end if;
  if p_ran_at > v_now then
    return v_now - p_ran_at;
  end if;
  if v_usual is null or v_now - v_last < greatest(interval '5 seconds', 5 * v_usual)
     or exists (select 1 from fenceline.worker w where w.stopped_at is null
                and w.heartbeat_at > v_last + interval '2 seconds' and w.heartbeat_at < v_now - interval '2 seconds') then
    return null;
  end if;
  return v_now - v_last;
end;
$$;

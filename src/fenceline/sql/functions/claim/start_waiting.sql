-- Notes that a worker waits for a lane, so that enqueue notifies it. Written once per wait, not per poll.
-- roles: none
create or replace function fenceline.start_waiting(p_worker_id integer, p_lane text, p_seconds double precision,
                                                   p_now timestamptz) returns void
language sql as $$
  insert into fenceline.waiter (lane, worker_id, until)
  select p_lane, p_worker_id, p_now + make_interval(secs => p_seconds)
  where not exists (
    select 1 from fenceline.waiter w
    where w.lane = p_lane and w.worker_id = p_worker_id and w.until > p_now + make_interval(secs => p_seconds / 2))
  on conflict (lane, worker_id) do update set until = excluded.until;
$$;

-- Whether a moment was noted before the clock was set by p_step, which was found out a moment ago (clock_step).
-- roles: none
create or replace function fenceline.is_before_step(p_at timestamptz, p_step interval, p_now timestamptz) returns boolean
language sql immutable as $$
  select case when p_step < interval '0' then p_at > p_now or p_at < p_now - interval '2 seconds'
              else p_at < p_now - p_step / 2 end;
$$;

-- How far the clock was set since maintenance ran last, for those who maintain: see clock_step_for.
-- roles: none
create or replace function fenceline.clock_step(p_ran_at timestamptz) returns interval
language sql volatile as $$
  select fenceline.clock_step_for(p_ran_at, 'fenceline');
$$;

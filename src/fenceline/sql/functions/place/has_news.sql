-- Whether what a job is held for has come: a signal that nobody has taken, or the end of its time.
-- roles: none
create or replace function fenceline.has_news(p_wait fenceline.wait) returns boolean
language sql stable as $$
  select coalesce(p_wait.due_at <= fenceline.clock(), false)
      or exists (select 1 from fenceline.signal s
                 where s.job_id = p_wait.job_id and s.name = p_wait.signal and s.taken_at is null);
$$;

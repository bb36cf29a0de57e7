-- Who holds a lock or waits for one, in words: a job, or code outside handlers.
-- roles: none
create or replace function fenceline.say_holder(p_job_id bigint, p_attempt_id uuid) returns text
language sql stable as $$
  select coalesce((select 'app.lock of ' || h.actor from fenceline.lock_lease h where h.owner = p_attempt_id),
                  'job ' || fenceline.public_id(p_job_id));
$$;

-- Whether an actor is behind a job: he enqueued it, said what the schedule that made it enqueues or ran that by hand, or has
-- had in hand the secret of the trigger that made it. The audit knows.
-- roles: none
create or replace function fenceline.is_own_request(p_job fenceline.job, p_actor text) returns boolean
language sql stable as $$
  select coalesce(p_job.created_by = p_actor, false) or exists (
    select 1 from fenceline.event e
    where p_job.created_by ~ '^(schedule|trigger):' and e.subject = split_part(p_job.created_by, ':', 2)
      and e.tenant = p_job.tenant and e.actor = p_actor and case e.action
        when 'trigger.create' then true
        when 'trigger.rotate' then true
        when 'schedule.create' then true
        when 'schedule.run' then e.after ->> 'job' = fenceline.public_id(p_job.id)
        when 'schedule.change' then  -- not one who paused it
          (e.before -> 'kind', e.before -> 'args', e.before -> 'options')
          is distinct from (e.after -> 'kind', e.after -> 'args', e.after -> 'options')
        else false end);
$$;

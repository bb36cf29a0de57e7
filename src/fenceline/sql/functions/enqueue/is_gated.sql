-- Whether a new job meets a gate, takes a key or is meant for somebody, so that it cannot go straight to `ready`.
-- roles: none
create or replace function fenceline.is_gated(p_job fenceline.job) returns boolean
language sql immutable parallel safe as $$
  select p_job.run_at is not null or p_job.expires_at is not null or p_job.dedupe_key is not null
      or p_job.idempotency_key is not null or p_job.resource_lock is not null or p_job.key is not null
      or p_job.needs_approval or p_job.requires_hash is not null or p_job.after is not null
      or p_job.after_policy is not null or p_job.runner is not null;
$$;

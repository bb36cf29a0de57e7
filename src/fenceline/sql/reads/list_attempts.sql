-- Every attempt of a job, the live one included, first to last; a row without attempt is a job that ended unclaimed.
-- roles: producer, worker, reader
create or replace function fenceline.list_attempts(p_job_id bigint) returns table (
  attempt_id uuid, token bigint, number smallint, worker text, claimed_at timestamptz, started_at timestamptz,
  ended_at timestamptz, outcome text, final boolean, error jsonb, actor text, metadata jsonb
)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select a.attempt_id, a.token, a.number, w.name, a.claimed_at, coalesce(a.started_at, a.claimed_at), a.ended_at, a.outcome,
         a.final, a.error, a.actor, a.metadata
  from (
    -- Final rows and the others are in an index of their own each.
    select h.attempt_id, h.token, h.number, h.worker_id, h.claimed_at, h.started_at, h.ended_at, h.outcome, h.final,
           h.error, h.actor, h.metadata
    from fenceline.history h where h.job_id = p_job_id and h.final
    union all
    select h.attempt_id, h.token, h.number, h.worker_id, h.claimed_at, h.started_at, h.ended_at, h.outcome, h.final,
           h.error, h.actor, h.metadata
    from fenceline.history h where h.job_id = p_job_id and not h.final
    union all
    select r.attempt_id, r.token, r.number, r.worker_id, r.claimed_at, r.started_at, null, null, false, null, null, null
    from fenceline.running r where r.job_id = p_job_id
  ) a
  left join fenceline.worker w on w.id = a.worker_id
  order by a.token nulls last, a.ended_at;
$$;

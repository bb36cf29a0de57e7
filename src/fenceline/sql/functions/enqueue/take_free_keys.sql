-- Takes the idempotency and dedupe keys of many jobs at once, where nobody has them. Of two jobs with the same key the first
-- one gets it.
--
-- p_options   the options of each job, for what its idempotency key stands for (request_hash)
-- Returns for each job whether it has all its keys. One that has not may have its idempotency key, and none of them is lost:
-- take_idempotency_key and take_dedupe_key say who has it.
-- Each row is inserted with "on conflict", which waits for an uncommitted rival and then says who won; in the order of the keys,
-- so that two calls with the same keys do not wait for each other.
-- roles: none
create or replace function fenceline.take_free_keys(p_jobs fenceline.job[], p_options jsonb[]) returns boolean[]
language sql as $$
  with given as (
    select j.id, j.tenant, j.idempotency_key, j.dedupe_key, j.kind, j.args, j.ordinality as n
    from unnest(p_jobs) with ordinality j
  ), known as (
    insert into fenceline.idempotency as i (tenant, key, job_id, expires_at, request)
    select f.tenant, f.idempotency_key, f.id, fenceline.clock() + make_interval(secs => s.idempotency_seconds),
           fenceline.request_hash(f.kind, f.args, p_options[f.n])
    from (select distinct on (g.tenant, g.idempotency_key) g.* from given g
          where g.idempotency_key is not null order by g.tenant, g.idempotency_key, g.n) f
    cross join fenceline.setting s
    order by f.tenant, f.idempotency_key
    on conflict (tenant, key) do update
      set job_id = excluded.job_id, expires_at = excluded.expires_at, request = excluded.request
      where i.expires_at <= fenceline.clock()
    returning i.job_id
  ), tried as (
    select g.id, g.tenant, g.dedupe_key, g.n,
           g.idempotency_key is null or g.id in (select k.job_id from known k) as is_known
    from given g
  ), deduped as (
    insert into fenceline.dedupe as d (tenant, key, job_id)
    select t.tenant, t.dedupe_key, t.id from tried t where t.is_known and t.dedupe_key is not null
    order by t.tenant, t.dedupe_key, t.n
    on conflict (tenant, key) do nothing
    returning d.job_id
  )
  select array_agg(t.is_known and (t.dedupe_key is null or t.id in (select d.job_id from deduped d)) order by t.n)
  from tried t;
$$;

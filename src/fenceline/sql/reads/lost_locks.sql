-- Resource locks, keys and dedupe keys of jobs that are over or gone: nobody will give them back.
-- roles: reader
create or replace function fenceline.lost_locks() returns table (what text, tenant text, name text, job text)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select 'resource_lock', l.tenant, l.name, fenceline.public_id(l.job_id)
  from fenceline.resource_lock l where not fenceline.is_live(l.job_id)
  union all
  select 'key', k.tenant, k.key, fenceline.public_id(k.job_id)
  from fenceline.key_holder k where not fenceline.is_live(k.job_id)
  union all
  select 'dedupe_key', d.tenant, d.key, fenceline.public_id(d.job_id)
  from fenceline.dedupe d
  where not fenceline.is_live(d.job_id)
    and not exists (select 1 from fenceline.dedupe_check c where c.job_id = d.job_id);  -- maintain gives it back
$$;

-- Whether a wait for the block p_owner can never end: it, or a block that it waits for inside, and so on, is one of
-- p_holding. Only blocks that live count; null waits for nobody.
-- roles: none
create or replace function fenceline.leads_back(p_owner uuid, p_holding uuid[]) returns boolean
language sql stable as $$
  with recursive blocked (owner) as (
    select p_owner
    union
    select l.owner
    from blocked b
    join fenceline.lock_wait w on b.owner = any(w.holding) and fenceline.is_holding(w.job_id, w.attempt_id)
    join fenceline.attempt_lock l on l.tenant = w.tenant and l.namespace = w.namespace and l.name = w.name
  )
  select exists (select 1 from blocked b where b.owner = any(p_holding));
$$;

-- Puts jobs where their next gate says: run_at in the future → timer, key not yet held → held, else → ready.
-- The one place that decides it, for every job that may meet a gate; a new job that meets none is inserted into `ready` where
-- it is made (enqueue, insert_jobs: the fast paths). Approval and dependencies come before and are judged by their own
-- functions.
-- Tables: timer, held, key_check, ready; reads lane. Locks nothing but the rows it inserts.
-- roles: none
create or replace function fenceline.place_jobs(p_jobs fenceline.live[]) returns void
-- As in claim_jobs: a plan that does not depend on statistics.
language plpgsql set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off as $$
declare
  v_now timestamptz := fenceline.clock();
  v_lanes text[];
begin
  insert into fenceline.timer (job_id, seq, priority, lane, kind, tenant, number, token, deaths, uses, run_at)
  select l.job_id, l.seq, l.priority, l.lane, l.kind, l.tenant, l.number, l.token, l.deaths, l.uses, l.run_at
  from unnest(p_jobs) l
  where l.run_at > v_now;

  if exists (select 1 from unnest(p_jobs) l where l.uses & 4 /* key wanted */ <> 0) then
    with parked as (
      insert into fenceline.held
        (job_id, seq, priority, lane, kind, tenant, waiting_for, number, token, deaths, uses, run_at, key)
      select l.job_id, l.seq, l.priority, l.lane, l.kind, l.tenant, 'key', l.number, l.token, l.deaths, l.uses,
             l.run_at, j.key
      from unnest(p_jobs) l join fenceline.job j on j.id = l.job_id
      where l.uses & 4 /* key wanted */ <> 0 and coalesce(l.run_at <= v_now, true)
      returning tenant, key
    )
    insert into fenceline.key_check (id, tenant, key)
    select fenceline.next_id(), d.tenant, d.key from (select distinct p.tenant, p.key from parked p) d;
  end if;

  -- In a lane with ageing, "priority grows by one every ageing_seconds" is a fixed order: time of becoming claimable
  -- less priority × ageing. So the rank is a seq, and claims need not know about ageing.
  insert into fenceline.ready
    (job_id, seq, priority, lane, kind, tenant, own_priority, number, token, deaths, uses, fair, runner)
  select l.job_id, fenceline.aged_seq(l.seq, l.priority, n.ageing_seconds),
         case when n.ageing_seconds is null then l.priority else 0 end,
         l.lane, l.kind, l.tenant,
         case when n.ageing_seconds is not null then l.priority end,
         nullif(l.number, 0), l.token, l.deaths, nullif(l.uses, 0), nullif(n.fair, false),
         case when l.uses & 256 /* addressed */ <> 0
              then (select fenceline.address_of(j.runner) from fenceline.job j where j.id = l.job_id) end
  from unnest(p_jobs) l left join fenceline.lane n on n.name = l.lane
  where coalesce(l.run_at <= v_now, true) and coalesce(l.uses & 4 /* key wanted */, 0) = 0;

  select array_agg(distinct l.lane) into v_lanes from unnest(p_jobs) l where coalesce(l.run_at <= v_now, true);
  if v_lanes is not null then
    perform fenceline.wake(v_lanes);
  end if;
  if exists (select 1 from fenceline.follow) then
    perform fenceline.tell_followers(array(select l.job_id from unnest(p_jobs) l));
  end if;
end;
$$;

-- Lets parked jobs through whose key has room, in order, and hands them to `ready`.
--
-- p_since     look only at requests since this id. A claim looks at the last seconds, so that it does not scan dead
--             entries while something pins vacuum; the resolver looks at all.
-- A key's limit is exact: admissions of one key queue up behind a lock of that key, then count. Keys are locked in
-- order, so that two admissions cannot wait for each other. Who is first in line and is being changed by somebody (an open
-- cancel, say) is not waited for: its line stands until that is over. Returns how many jobs were admitted.
-- Caller runs in READ COMMITTED: the count must be of after the lock.
-- roles: none
create or replace function fenceline.admit_keys(p_since bigint default 0, p_limit integer default 1000) returns integer
language plpgsql as $$
declare
  v_keys record;
  v_head record;
  v_live fenceline.live;
  v_used integer;
  v_taken integer;
  v_again boolean;  -- this key must be looked at again
  v_admitted fenceline.live[] := '{}';
  v_count integer := 0;
begin
  for v_keys in
    with asked as (
      delete from fenceline.key_check where id = any(array(
        select c.id from fenceline.key_check c where c.id >= p_since order by c.id limit p_limit
        for update skip locked))
      returning tenant, key
    )
    select d.tenant, d.key from (select distinct a.tenant, a.key from asked a) d
    order by fenceline.key_lock(d.tenant, d.key)
  loop
    if not fenceline.take_advisory_lock(1179926086, fenceline.key_lock(v_keys.tenant, v_keys.key)) then
      insert into fenceline.key_check (id, tenant, key) values (fenceline.next_id(), v_keys.tenant, v_keys.key);
      continue;
    end if;
    v_taken := 0;
    v_again := false;
    select count(*) into v_used from fenceline.key_holder h
    where h.tenant = v_keys.tenant and h.key = v_keys.key;
    for v_head in
      select h.job_id, j.key_limit
      from fenceline.held h join fenceline.job j on j.id = h.job_id
      where h.waiting_for = 'key' and h.tenant = v_keys.tenant and h.key = v_keys.key
      order by h.priority desc, h.seq
      limit 500  -- so that the planner takes the index, whatever it believes about the parked
    loop
      exit when v_used >= v_head.key_limit;
      select h.job_id, fenceline.next_id(), h.priority, h.lane, h.kind, h.tenant, h.number, h.token, h.deaths,
             (h.uses & ~4 /* key wanted */) | 8 /* key held */, h.run_at
        into v_live
      from fenceline.held h where h.job_id = v_head.job_id and h.waiting_for = 'key' for update skip locked;
      v_again := not found;
      exit when v_again;
      v_used := v_used + 1;
      v_taken := v_taken + 1;
      insert into fenceline.key_holder (tenant, key, job_id) values (v_keys.tenant, v_keys.key, v_head.job_id);
      v_admitted := v_admitted || v_live;
    end loop;
    if v_again or v_taken = 500 then
      insert into fenceline.key_check (id, tenant, key) values (fenceline.next_id(), v_keys.tenant, v_keys.key);
    end if;
  end loop;
  v_count := cardinality(v_admitted);
  if v_count > 0 then
    delete from fenceline.held where job_id = any(array(select l.job_id from unnest(v_admitted) l));
    perform fenceline.place_jobs(v_admitted);
  end if;
  return v_count;
end;
$$;

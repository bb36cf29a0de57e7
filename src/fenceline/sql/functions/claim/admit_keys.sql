-- Lets parked jobs through whose key has room, in order, and hands them to `ready`.
--
-- p_since     look only at requests since this id. A claim looks at the last seconds, so that it does not scan dead
--             entries while something pins vacuum; the resolver looks at all.
-- A key's limit is exact: who admits to it has a lock of that key, then counts. Nobody is waited for, because claims of every
-- lane come by here: a key whose lock another has (who admits to it now, or whose session is frozen in that) is left to the
-- next look. Nor is who is first in line and is being changed (an open cancel, say): its line stands until that is over.
-- Returns how many jobs were admitted.
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
  v_done bigint[] := '{}';
  v_admitted fenceline.live[] := '{}';
  v_count integer := 0;
begin
  for v_keys in
    select a.tenant, a.key, array_agg(a.id) as ids
    from (select c.id, c.tenant, c.key from fenceline.key_check c where c.id >= p_since order by c.id limit p_limit
          for update skip locked) a
    group by a.tenant, a.key
  loop
    if not pg_try_advisory_xact_lock(1179926086, fenceline.key_lock(v_keys.tenant, v_keys.key)) then
      if p_since = 0 then  -- to the end, so that a thousand of them do not keep the others from their turn
        update fenceline.key_check c set id = fenceline.next_id() where c.id = any(v_keys.ids);
      end if;
      continue;
    end if;
    v_done := v_done || v_keys.ids;
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
  if cardinality(v_done) > 0 then
    delete from fenceline.key_check c where c.id = any(v_done);
  end if;
  v_count := cardinality(v_admitted);
  if v_count > 0 then
    delete from fenceline.held where job_id = any(array(select l.job_id from unnest(v_admitted) l));
    perform fenceline.place_jobs(v_admitted);
  end if;
  return v_count;
end;
$$;

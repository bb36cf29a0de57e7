-- Lets parked jobs through whose key has room, in order, and hands them to `ready`.
--
-- p_since     look only at requests since this id. A claim looks at the last seconds, so that it does not scan dead
--             entries while something pins vacuum; the resolver looks at all.
-- A key's limit is exact: admissions of one key queue up behind a lock of that key, then count. Keys are locked in
-- order, so that two admissions cannot wait for each other. Returns how many jobs were admitted.
-- roles: none
create or replace function fenceline.admit_keys(p_since bigint default 0, p_limit integer default 1000) returns integer
language plpgsql as $$
declare
  v_keys record;
  v_head record;
  v_used integer;
  v_taken integer;
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
    perform pg_advisory_xact_lock(1179926086, fenceline.key_lock(v_keys.tenant, v_keys.key));
    v_taken := 0;
    select count(*) into v_used from fenceline.key_holder h
    where h.tenant = v_keys.tenant and h.key = v_keys.key;
    for v_head in
      select h.job_id, j.key_limit,
             row(h.job_id, fenceline.next_id(), h.priority, h.lane, h.kind, h.tenant, h.number, h.token, h.deaths,
                 (h.uses & ~4) | 8, h.run_at)::fenceline.live as live
      from fenceline.held h join fenceline.job j on j.id = h.job_id
      where h.waiting_for = 'key' and h.tenant = v_keys.tenant and h.key = v_keys.key
      order by h.priority desc, h.seq
      limit 500  -- so that the planner takes the index, whatever it believes about the parked
      for update of h
    loop
      exit when v_used >= v_head.key_limit;
      v_used := v_used + 1;
      v_taken := v_taken + 1;
      insert into fenceline.key_holder (tenant, key, job_id) values (v_keys.tenant, v_keys.key, v_head.job_id);
      v_admitted := v_admitted || v_head.live;
    end loop;
    if v_taken = 500 then
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

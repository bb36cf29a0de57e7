-- Has everything that is encrypted encrypted anew with the newest key, by a job of kind `fenceline.rekey` in the lane `system`. While
-- one waits to be run, that one is the answer. Audited.
-- roles: admin
create or replace function fenceline.start_rekey(p_actor text default null, out job_id bigint, out created boolean)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_made record;
begin
  -- An operator may have deleted the lane.
  insert into fenceline.lane (name, slots, poll_interval_ms) values ('system', 1, 30000) on conflict do nothing;
  v_made := fenceline.insert_jobs('fenceline.rekey', array['{}'::json],
    json_build_object('lane', 'system', 'dedupe_key', 'fenceline.rekey'), p_actor, null, 'schedule');
  job_id := v_made.job_ids[1];
  created := v_made.created[1];
  if created then
    perform fenceline.record_event(p_actor, 'system.rekey', fenceline.public_id(job_id), null, null, null, null);
  end if;
end;
$$;

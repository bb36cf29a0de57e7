-- Drops the partitions of one day, if all in them that has ended did so before p_ended_before; live jobs of that day move
-- to the default partition. Returns how many jobs were forgotten (0: not yet droppable).
-- roles: none
create or replace function fenceline.drop_day(p_day text, p_ended_before timestamptz) returns bigint
language plpgsql as $$
declare
  v_count bigint;
  v_young boolean;
  v_from bigint := fenceline.id_at(to_date(p_day, 'YYYYMMDD')::timestamp at time zone 'UTC');
  v_to bigint := fenceline.id_at((to_date(p_day, 'YYYYMMDD') + 1)::timestamp at time zone 'UTC');
begin
  execute format('select exists (select 1 from fenceline.%I where ended_at >= $1)', 'history_' || p_day)
    into v_young using p_ended_before;
  if v_young then
    return 0;
  end if;
  execute format('alter table fenceline.job detach partition fenceline.%I', 'job_' || p_day);
  execute format('alter table fenceline.history detach partition fenceline.%I', 'history_' || p_day);
  -- What has no final row is alive. After the detach its id belongs to the default partition.
  execute format('insert into fenceline.job select j.* from fenceline.%1$I j
                  where not exists (select 1 from fenceline.%2$I h where h.job_id = j.id and h.final)',
                 'job_' || p_day, 'history_' || p_day);
  execute format('insert into fenceline.history select h.* from fenceline.%2$I h
                  where not exists (select 1 from fenceline.%2$I f where f.job_id = h.job_id and f.final)',
                 'job_' || p_day, 'history_' || p_day);
  execute format('select count(*) from fenceline.%I where final', 'history_' || p_day) into v_count;
  delete from fenceline.log l where l.job_id >= v_from and l.job_id < v_to
    and not exists (select 1 from fenceline.job j where j.id = l.job_id);
  delete from fenceline.progress p where p.job_id >= v_from and p.job_id < v_to
    and not exists (select 1 from fenceline.job j where j.id = p.job_id);
  delete from fenceline.step s where s.job_id >= v_from and s.job_id < v_to
    and not exists (select 1 from fenceline.job j where j.id = s.job_id);
  delete from fenceline.checkpoint c where c.job_id >= v_from and c.job_id < v_to
    and not exists (select 1 from fenceline.job j where j.id = c.job_id);
  execute format('drop table fenceline.%I, fenceline.%I', 'job_' || p_day, 'history_' || p_day);
  return v_count;
end;
$$;

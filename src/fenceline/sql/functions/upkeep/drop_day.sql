-- Drops the partitions of one day, if all in them that has ended did so before p_ended_before; live jobs of that day move
-- to the default partition.
-- Returns how many jobs were forgotten (null: not yet), whether there are logs and the like left to delete first, and whether
-- somebody else's locks were in the way (then nothing was changed).
--
-- From the detach to the end of the transaction nobody else can enqueue or finish. So what takes long comes before it:
-- reading through the day, and deleting logs and the like, p_limit rows at a time. Afterwards only
-- what may have changed meanwhile is looked at again. A day with many live jobs is not dropped: moving them would take
-- long, too.
-- roles: none
create or replace function fenceline.drop_day(
  p_day text,
  p_ended_before timestamptz,
  p_limit integer,
  out forgotten bigint,
  out more boolean,
  out blocked boolean
)
language plpgsql set lock_timeout = '1s' as $$
declare
  v_ended bigint;
  v_live bigint[];
  v_young boolean;
  v_from bigint := fenceline.id_at(to_date(p_day, 'YYYYMMDD')::timestamp at time zone 'UTC');
  v_to bigint := fenceline.id_at((to_date(p_day, 'YYYYMMDD') + 1)::timestamp at time zone 'UTC');
begin
  more := false;
  blocked := false;
  execute format('select exists (select 1 from fenceline.%I where ended_at >= $1)', 'history_' || p_day)
    into v_young using p_ended_before;
  if v_young then
    return;
  end if;
  -- What has no final row is alive.
  execute format('select count(h.job_id), coalesce(array_agg(j.id) filter (where h.job_id is null), ''{}'')
                  from fenceline.%I j left join fenceline.%I h on h.job_id = j.id and h.final',
                 'job_' || p_day, 'history_' || p_day)
    into v_ended, v_live;
  if cardinality(v_live) > 1000 then
    return;
  end if;
  more := not fenceline.forget_details(v_from, v_to, v_live, p_limit);
  if more then
    return;
  end if;

  begin
    -- Whoever comes after us waits behind us: so briefly, and until the end of this function only.
    perform set_config('lock_timeout', '20ms', true);
    execute format('alter table fenceline.job detach partition fenceline.%I', 'job_' || p_day);
    execute format('alter table fenceline.history detach partition fenceline.%I', 'history_' || p_day);
    execute format('select exists (select 1 from fenceline.%I where ended_at >= $1)', 'history_' || p_day)
      into v_young using p_ended_before;
    if v_young then
      raise exception using errcode = 'lock_not_available', message = 'a job of that day has just ended';
    end if;
    -- An enqueue that stayed open for longer than the retention: its job was not seen above.
    v_live := v_live || array(
      select r.job_id from fenceline.ready r where r.job_id >= v_from and r.job_id < v_to union all
      select r.job_id from fenceline.running r where r.job_id >= v_from and r.job_id < v_to union all
      select t.job_id from fenceline.timer t where t.job_id >= v_from and t.job_id < v_to union all
      select h.job_id from fenceline.held h where h.job_id >= v_from and h.job_id < v_to);
    -- After the detach their ids belong to the default partitions.
    execute format('insert into fenceline.job select * from fenceline.%I where id = any($1)', 'job_' || p_day) using v_live;
    execute format('insert into fenceline.history select * from fenceline.%I where job_id = any($1) and not final',
                   'history_' || p_day) using v_live;
    execute format('drop table fenceline.%I, fenceline.%I', 'job_' || p_day, 'history_' || p_day);
    forgotten := v_ended;
  exception when lock_not_available then
    blocked := true;
  end;
end;
$$;

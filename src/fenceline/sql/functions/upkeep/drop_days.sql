-- Drops daily partitions in which everything is past the longest retention: one with jobs per call, or up to ten empty
-- ones. Returns how many jobs were forgotten with it, and whether there is more to do; call it again while either says so.
-- Forgotten is null when somebody else is at it: one at a time.
--
-- A drop takes exclusive locks on `job` and `history`, which a long read keeps from us; as in create_partitions we ask for
-- a few milliseconds, and in vain ever more rarely. In a transaction of its own, please: the locks stay until its end.
-- Needs READ COMMITTED (FL016): what has changed while it waited is looked at again.
-- roles: worker
create or replace function fenceline.drop_days(p_limit integer default 10000, out forgotten bigint, out more boolean)
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off as $$
declare
  v_now timestamptz := fenceline.clock();
  v_longest interval := (fenceline.retention_bounds()).longest;
  v_part record;
  v_some boolean;
  v_name text;
  v_empty text[] := '{}';
  v_done record;
  v_blocked boolean := false;
begin
  perform fenceline.require_read_committed('drop_days');
  more := false;
  if not pg_try_advisory_xact_lock(1179926087, 2) then
    return;
  end if;
  forgotten := 0;
  if not fenceline.may_try('drop_days') then
    return;
  end if;
  for v_part in
    select substr(c.relname, 5) as day
    from pg_inherits i join pg_class c on c.oid = i.inhrelid
    where i.inhparent = 'fenceline.job'::regclass and c.relname ~ '^job_\d{8}$'
      and to_date(substr(c.relname, 5), 'YYYYMMDD') < ((v_now - v_longest) at time zone 'UTC')::date
    order by c.relname
  loop
    execute format('select exists (select 1 from fenceline.%I)', 'job_' || v_part.day) into v_some;
    if not v_some then
      v_empty := v_empty || v_part.day;
      continue;
    end if;
    v_done := fenceline.drop_day(v_part.day, v_now - v_longest, p_limit);
    -- Nothing more under its locks; nor, if it did not get them, again behind somebody who has them.
    if v_done.blocked or v_done.more or v_done.forgotten is not null then
      perform fenceline.note_try('drop_days', v_done.blocked);
      forgotten := coalesce(v_done.forgotten, 0);
      more := v_done.more;
      return;
    end if;
  end loop;
  foreach v_name in array v_empty[1:10] loop
    v_done := fenceline.drop_day(v_name, v_now - v_longest, p_limit);
    v_blocked := v_done.blocked;
    exit when v_blocked;
  end loop;
  perform fenceline.note_try('drop_days', v_blocked);
end;
$$;

-- Makes the partitions of `job` and `history` for today and the days ahead, one per day. Enqueue never depends on it: what
-- has no partition goes to the default one. A day that already has rows there stays there.
--
-- Attaching one takes an exclusive lock on the default partition, which a long read (pg_dump, a report) keeps from us.
-- Whoever comes after us waits behind us, so we ask for a few milliseconds only and, in vain, ever more rarely
-- (note_try): there are days left, and once a minute when the next one is near.
-- In a transaction of its own, please: the locks stay until its end.
-- DDL cannot be written without dynamic SQL; the only values in it are dates and numbers made here.
-- roles: worker
create or replace function fenceline.create_partitions(p_days integer default 3) returns integer
language plpgsql security definer set search_path = pg_catalog, pg_temp set lock_timeout = '20ms' as $$
declare
  v_today date := (fenceline.clock() at time zone 'UTC')::date;
  v_day date;
  v_table text;
  v_name text;
  v_from bigint;
  v_to bigint;
  v_new integer;
  v_made integer := 0;
begin
  if not pg_try_advisory_xact_lock(1179926087, 1) or not fenceline.may_try('partitions') then
    return 0;
  end if;
  for v_day in select v_today + i from generate_series(0, p_days) i loop
    v_new := 0;
    v_from := fenceline.id_at(v_day::timestamp at time zone 'UTC');
    v_to := fenceline.id_at((v_day + 1)::timestamp at time zone 'UTC');
    -- Both or neither: a day is dropped as a pair (drop_day).
    begin
      foreach v_table in array array['job', 'history'] loop
        v_name := format('%s_%s', v_table, to_char(v_day, 'YYYYMMDD'));
        continue when to_regclass('fenceline.' || v_name) is not null;
        -- Made apart and attached: the parent is not locked against enqueue meanwhile.
        execute format('create table fenceline.%I (like fenceline.%I including defaults including constraints)',
                       v_name, v_table);
        execute format('alter table fenceline.%I attach partition fenceline.%I for values from (%s) to (%s)',
                       v_table, v_name, v_from, v_to);
        v_new := v_new + 1;
      end loop;
      v_made := v_made + v_new;
    exception
      when check_violation then null;      -- the default partition has rows of that day
      when lock_not_available then
        perform fenceline.note_try('partitions', true, case when v_day <= v_today + 1 then 60 else 3600 end);
        return v_made;
    end;
  end loop;
  perform fenceline.note_try('partitions', false);
  return v_made;
end;
$$;

-- Forgets finished jobs whose retention (per kind and status) is over. Returns how many; call it again until it is 0.
--
-- A partition in which everything is past the longest retention is dropped whole, one with jobs per call; a live
-- straggler in it (a job scheduled far ahead) moves to the default partition first. Elsewhere rows are deleted, p_limit
-- at a time; but what will be dropped with its day within two days, and has the longest retention anyway, waits for that.
-- Waits for no lock longer than lock_timeout; what was not possible now is done next time. A transaction of its own,
-- please: a dropped partition's parents are locked until its end.
-- roles: worker
create or replace function fenceline.prune(p_limit integer default 10000) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp set lock_timeout = '100ms' as $$
declare
  v_now timestamptz := fenceline.clock();
  v_shortest interval;
  v_longest interval;
  v_day date;          -- of the jobs whose longest retention ends now
  v_from bigint;
  v_to bigint;
  v_ids bigint[];
  v_part record;
  v_some boolean;
  v_name text;
  v_empty text[] := '{}';
  v_dropped bigint;
begin
  if not pg_try_advisory_xact_lock(1179926087, 2) then
    return 0;
  end if;
  select make_interval(secs => least(min(s.retention_seconds), min(r.seconds))),
         make_interval(secs => greatest(max(s.retention_seconds), max(r.seconds)))
    into v_shortest, v_longest
  from fenceline.setting s
  left join (select v.value::double precision as seconds
             from fenceline.kind k
             cross join lateral jsonb_each_text(coalesce(k.retention, '{}') || coalesce(k.operator_retention, '{}')) v) r
    on true;
  v_day := ((v_now - v_longest) at time zone 'UTC')::date;

  for v_part in
    select substr(c.relname, 5) as day
    from pg_inherits i join pg_class c on c.oid = i.inhrelid
    where i.inhparent = 'fenceline.job'::regclass and c.relname ~ '^job_\d{8}$'
      and to_date(substr(c.relname, 5), 'YYYYMMDD') < v_day
    order by c.relname
  loop
    execute format('select exists (select 1 from fenceline.%I)', 'job_' || v_part.day) into v_some;
    if not v_some then
      v_empty := v_empty || v_part.day;
      continue;
    end if;
    begin
      v_dropped := fenceline.drop_day(v_part.day, v_now - v_longest, p_limit);
    exception when lock_not_available then null;  -- next time
    end;
    -- Nothing more under its locks.
    if v_dropped is not null then
      return v_dropped;
    end if;
  end loop;

  -- A short retention is meant to the minute; a long one may wait for its partition, which costs next to nothing.
  if v_longest >= interval '3 days' then
    v_from := fenceline.id_at((v_day - 1)::timestamp at time zone 'UTC');
    v_to := fenceline.id_at((v_day + 1)::timestamp at time zone 'UTC');
  end if;
  -- The index on ended_at finds the candidates; the predicate per kind and status decides.
  v_ids := array(
    select h.job_id
    from fenceline.history h
    join fenceline.job j on j.id = h.job_id
    cross join lateral fenceline.retention_of(j.kind, h.outcome) r (retention)
    where h.final and h.ended_at < v_now - v_shortest and h.ended_at < v_now - r.retention
      and (v_from is null or h.job_id < v_from or h.job_id >= v_to or r.retention < v_longest
           or h.tableoid = 'fenceline.history_default'::regclass)
    limit p_limit);
  if cardinality(v_ids) > 0 then
    perform fenceline.forget_jobs(v_ids);
  end if;

  foreach v_name in array v_empty[1:10] loop
    begin
      perform fenceline.drop_day(v_name, v_now - v_longest, p_limit);
    exception when lock_not_available then exit;
    end;
  end loop;
  return cardinality(v_ids);
end;
$$;

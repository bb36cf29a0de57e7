-- Forgets finished jobs whose retention (per kind and status) is over. Returns how many jobs, or all those of dropped
-- partitions, were forgotten.
--
-- A partition in which everything is past the longest retention is dropped whole; a live straggler in it (a job
-- scheduled far ahead) moves to the default partition first. Elsewhere rows are deleted, p_limit at a time.
-- Waits for no lock longer than lock_timeout; what was not possible now is done next time.
-- roles: worker
create or replace function fenceline.prune(p_limit integer default 10000) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp set lock_timeout = '500ms' as $$
declare
  v_now timestamptz := fenceline.clock();
  v_shortest interval;
  v_longest interval;
  v_ids bigint[];
  v_part record;
  v_count bigint := 0;
begin
  if not pg_try_advisory_xact_lock(1179926087, 2) then
    return 0;
  end if;
  select make_interval(secs => least(min(s.retention_seconds), min(r.seconds))),
         make_interval(secs => greatest(max(s.retention_seconds), max(r.seconds)))
    into v_shortest, v_longest
  from fenceline.setting s
  left join (select v.value::double precision as seconds
             from fenceline.kind k cross join lateral jsonb_each_text(k.retention) v) r on true;

  for v_part in
    select substr(c.relname, 5) as day
    from pg_inherits i join pg_class c on c.oid = i.inhrelid
    where i.inhparent = 'fenceline.job'::regclass and c.relname ~ '^job_\d{8}$'
      and to_date(substr(c.relname, 5), 'YYYYMMDD') < ((v_now - v_longest) at time zone 'UTC')::date - 1
    order by c.relname
  loop
    begin
      v_count := v_count + fenceline.drop_day(v_part.day, v_now - v_longest);
    exception when lock_not_available then null;  -- next time
    end;
  end loop;

  -- The index on ended_at finds the candidates; the predicate per kind and status decides.
  v_ids := array(
    select h.job_id from fenceline.history h join fenceline.job j on j.id = h.job_id
    where h.final and h.ended_at < v_now - v_shortest and h.ended_at < v_now - fenceline.retention_of(j.kind, h.outcome)
    limit p_limit);
  if cardinality(v_ids) > 0 then
    perform fenceline.forget_jobs(v_ids);
    v_count := v_count + cardinality(v_ids);
  end if;
  return v_count;
end;
$$;

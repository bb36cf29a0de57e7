-- Notifies clients that wait for the end of these jobs (function watch_jobs); silent when nobody does.
-- roles: none
create or replace function fenceline.tell_watchers(p_job_ids bigint[]) returns void
language plpgsql as $$
declare
  v_watched bigint[];
begin
  v_watched := array(select w.job_id from fenceline.watch w where w.job_id = any(p_job_ids));
  if cardinality(v_watched) > 0 then
    -- A payload holds 8,000 bytes: 300 ids of at most 19 digits and a comma.
    perform pg_notify('fenceline_ended', string_agg(c.id::text, ','))
    from unnest(v_watched) with ordinality c(id, n)
    group by (c.n - 1) / 300;
    delete from fenceline.watch w where w.job_id = any(v_watched);
  end if;
end;
$$;

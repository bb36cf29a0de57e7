-- Why no live worker can take a queued job, if so (explain_job): none serves its lane, knows its kind or is the one that
-- it is meant for; or all that could are frozen.
-- roles: none
create or replace function fenceline.explain_workers(p_ready fenceline.ready, p_since timestamptz, p_sees_fleet boolean)
returns jsonb[]
language plpgsql stable as $$
declare
  c_shown constant integer := 10;   -- workers, and kinds of each
  v_now timestamptz := fenceline.clock();
  v_found record;
  v_details jsonb;
  v_start text[] := array[format('fenceline worker APP --lanes %s', p_ready.lane), 'fenceline workers'];
begin
  with fleet as (
    select w.*, w.lease_until >= v_now as live,
           (w.lanes is null or p_ready.lane = any(w.lanes)) and (w.tenant is null or w.tenant = p_ready.tenant) as serves,
           fenceline.runs_kind(case when w.runner then fenceline.runner_kinds(w.kinds) else w.kinds end, p_ready.kind) as knows,
           coalesce(p_ready.runner <@ fenceline.claimer(w.id), true) as is_meant
    from fenceline.worker w where w.stopped_at is null and (w.tenant is null or w.tenant = p_ready.tenant)
  )
  select count(*) filter (where f.live) as live,
         count(*) filter (where f.live and f.serves) as serving,
         count(*) filter (where f.live and f.serves and f.knows) as knowing,
         count(*) filter (where f.live and f.serves and f.knows and f.is_meant) as meant,
         count(*) filter (where f.live and f.serves and f.knows and f.is_meant and f.blocked_at is null) as able,
         max(f.blocked_at) filter (where f.live and f.serves and f.knows and f.is_meant) as blocked_at,
         count(*) filter (where not f.live) as lost,
         (select jsonb_agg(s.shown) from (
            select jsonb_strip_nulls(jsonb_build_object(
                     'name', g.name, 'lanes', g.lanes, 'kinds', g.kinds[1 : c_shown],
                     'more_kinds', nullif(greatest(cardinality(g.kinds) - c_shown, 0), 0), 'labels', g.labels,
                     'status', case when not g.live then 'lost' when g.blocked_at is not null then 'blocked' else 'live' end,
                     'heartbeat_at', g.heartbeat_at)) as shown
            from fleet g order by g.serves desc, g.knows desc, g.live desc, g.id limit c_shown) s) as shown
    into v_found
  from fleet f;
  if v_found.able > 0 then
    return '{}';
  end if;
  v_details := jsonb_build_object('lane', p_ready.lane, 'kind', p_ready.kind, 'live', v_found.live, 'serving', v_found.serving,
                                  'lost', nullif(v_found.lost, 0), 'workers', case when p_sees_fleet then v_found.shown end);
  if v_found.serving = 0 then
    return array[fenceline.reason('no_worker',
      format('No live worker serves lane %s (%s live in all%s).', p_ready.lane, v_found.live,
             case when v_found.lost > 0 then format(', %s gone silent', v_found.lost) else '' end),
      p_since, null, v_details, v_start)];
  elsif v_found.knowing = 0 then
    return array[fenceline.reason('unknown_kind',
      format(case when v_found.serving = 1 then 'The only live worker of lane %2$s has no handler for kind %3$s.'
                  else 'None of the %1$s live workers of lane %2$s has a handler for kind %3$s.' end,
             v_found.serving, p_ready.lane, p_ready.kind),
      p_since, null, v_details,
      array['fenceline workers', 'fenceline jobs cancel ' || fenceline.public_id(p_ready.job_id)])];
  elsif v_found.meant = 0 then
    return array[fenceline.reason('no_addressee',
      format('It is meant for %s, and no live worker or runner is that one.',
             coalesce(p_ready.runner ->> 'name', 'labels ' || (p_ready.runner -> 'labels')::text)),
      p_since, null, v_details || jsonb_build_object('runner', p_ready.runner),
      array['fenceline workers', 'fenceline jobs cancel ' || fenceline.public_id(p_ready.job_id)])];
  end if;
  return array[fenceline.reason('workers_blocked',
    format('Every worker that could take it is frozen (%s of them): a handler blocks its event loop.', v_found.meant),
    v_found.blocked_at, null, v_details, array['fenceline workers', 'fenceline doctor'])];
end;
$$;

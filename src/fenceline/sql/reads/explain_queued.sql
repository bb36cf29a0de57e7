-- Why no worker has taken a queued job yet (explain_job): its lane, the workers, or those that come before it. The last
-- reason is always its place in line, of the first 1000 there; for somebody who is bound to a tenant, among that tenant's jobs.
-- roles: none
create or replace function fenceline.explain_queued(
  p_job_id bigint,
  p_tenant text,
  p_created_by text,
  p_sees_fleet boolean
) returns jsonb[]
language plpgsql stable as $$
declare
  v_now timestamptz := fenceline.clock();
  v_ready fenceline.ready;
  v_lane fenceline.lane;
  v_since timestamptz;
  v_ahead bigint;
  v_higher integer;
  v_tokens double precision;
  v_by_runner boolean;  -- it ran last
  v_reasons jsonb[];
begin
  select * into v_ready from fenceline.ready r where r.job_id = p_job_id;
  select * into v_lane from fenceline.lane n where n.name = v_ready.lane;
  if not found then
    return array[fenceline.reason('lane_missing', format('Its lane %s does not exist.', v_ready.lane),
      p_details => jsonb_build_object('lane', v_ready.lane),
      p_commands => array[format('fenceline lanes set %s', v_ready.lane)])];
  end if;
  -- In a lane with ageing seq is a rank, not a time.
  v_since := fenceline.id_time(case when v_ready.own_priority is null then greatest(v_ready.seq, p_job_id) else p_job_id end);
  v_higher := least(coalesce(v_ready.own_priority, v_ready.priority) + 10, 32767);
  v_reasons := fenceline.explain_lane(v_lane, p_tenant, p_created_by)
               || fenceline.explain_workers(v_ready, v_since, p_sees_fleet)
               || fenceline.explain_refused(v_ready);

  v_ahead := fenceline.jobs_ahead(v_ready, p_tenant);
  if v_ready.deaths is not null then
    select w.runner into v_by_runner
    from fenceline.history h join fenceline.worker w on w.id = h.worker_id
    where h.job_id = p_job_id and not h.final order by h.token desc limit 1;
    return v_reasons || fenceline.reason('alone',
      format('%s, and it waits to run in a process of its own%s.',
             case when v_ready.deaths = 0 then 'Its process crashed, with other jobs in it'
                  else format('Its process crashed with it alone (%s of 3 times)', v_ready.deaths) end,
             case when v_ahead > 0 then format('; %s before it do too', v_ahead) else '' end), v_since, null,
      jsonb_build_object('deaths', v_ready.deaths, 'ahead', v_ahead, 'lane', v_ready.lane),
      array[case when v_by_runner then 'fenceline runner' else 'fenceline worker' end || ' APP --isolated 4',
            'fenceline jobs show ' || fenceline.public_id(p_job_id)]);
  end if;

  if v_lane.rate_per_second is not null then
    v_tokens := fenceline.rate_tokens(v_lane, v_now);
    if v_tokens < v_ahead + 1 then
      v_reasons := v_reasons || fenceline.reason('rate_limited',
        format('Lane %s starts %s jobs a second at most, and %s come before this one.', v_lane.name, v_lane.rate_per_second,
               v_ahead), v_since, v_now + make_interval(secs => (v_ahead + 1 - v_tokens) / v_lane.rate_per_second),
        jsonb_build_object('lane', v_lane.name, 'rate_per_second', v_lane.rate_per_second, 'ahead', v_ahead),
        array[format('fenceline lanes set %s --rate-per-second %s', v_lane.name, v_lane.rate_per_second * 2)]);
    end if;
  end if;
  if v_lane.fair and v_ready.fair then
    return v_reasons || fenceline.reason('fair_share',
      format('Lane %s serves its tenants in turn; of tenant %s, %s come before this one.', v_lane.name,
             v_ready.tenant, v_ahead), v_since, null,
      jsonb_build_object('lane', v_lane.name, 'tenant', v_ready.tenant, 'ahead', v_ahead),
      array[format('fenceline jobs reprioritise %s --priority %s', fenceline.public_id(p_job_id), v_higher)]);
  elsif v_ahead > 0 then
    return v_reasons || fenceline.reason('behind',
      format(case when v_ahead = 1 then '%s job%s in lane %s comes before it.' else '%s jobs%s in lane %s come before it.' end,
             case when v_ahead = 1000 then 'At least 1000' else v_ahead::text end,
             coalesce(' of tenant ' || p_tenant, ''), v_lane.name), v_since, null, jsonb_build_object('lane', v_lane.name, 'ahead', v_ahead),
      array[format('fenceline jobs reprioritise %s --priority %s', fenceline.public_id(p_job_id), v_higher)]);
  end if;
  return v_reasons || fenceline.reason('next',
    format('It is the next%s of lane %s: a worker takes it as soon as it has a place free.',
           coalesce(' of tenant ' || p_tenant, ''), v_lane.name), v_since, null,
    jsonb_build_object('lane', v_lane.name, 'ahead', 0));
end;
$$;

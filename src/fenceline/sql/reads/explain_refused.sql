-- Whose handlers have refused the args of a queued job, and who may still take it (explain_job).
-- roles: none
create or replace function fenceline.explain_refused(p_ready fenceline.ready) returns jsonb[]
language plpgsql stable as $$
declare
  v_refusal fenceline.refusal;
  v_job fenceline.job;
  v_live bigint;
  v_takers bigint;
  v_error text;
begin
  select * into v_refusal from fenceline.refusal f where f.job_id = p_ready.job_id;
  if not found then
    return '{}';
  end if;
  select * into v_job from fenceline.job j where j.id = p_ready.job_id;
  v_live := fenceline.count_takers(v_job, p_ready.lane, null);
  v_takers := fenceline.count_takers(v_job, p_ready.lane, v_refusal.signatures);
  select h.error ->> 'message' into v_error from fenceline.history h
  where h.job_id = p_ready.job_id and not h.final and h.asked = 'refused' order by h.ended_at desc limit 1;
  return array[fenceline.reason('args_refused',
    format('Handlers of kind %s on %s of %s live workers do not take its args (%s); it waits for one that does.',
           p_ready.kind, v_live - v_takers, v_live, coalesce(v_error, 'they did not say why')),
    v_refusal.refused_at, null,
    jsonb_build_object('kind', p_ready.kind, 'live', v_live, 'takers', v_takers, 'refused_by', v_refusal.signatures),
    array['fenceline doctor', 'fenceline workers', 'fenceline jobs show ' || fenceline.public_id(p_ready.job_id)])];
end;
$$;

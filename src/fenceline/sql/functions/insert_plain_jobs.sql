-- The short way of insert_jobs, for jobs without options: one statement that looks up the route and writes `job` and
-- `ready`. Returns null, and does nothing, when anything is not plain (an unknown or special lane, a drain, args that
-- need a closer look); then insert_jobs goes the long way and says what is wrong.
--
-- "\u" in the JSON text is left to the long way: only there can \u0000 or half a surrogate pair hide.
-- roles: none
create or replace function fenceline.insert_plain_jobs(
  p_kind text,
  p_args json[],
  p_actor text,
  p_defaults json,
  p_origin text
) returns bigint[]
language plpgsql as $$
declare
  v_ids bigint[];
  v_lane text;
begin
  with route as materialized (
    select n.name as lane, s.max_args_bytes,
           coalesce((p_defaults ->> 'priority')::smallint, k.priority, n.default_priority) as priority,
           coalesce((p_defaults ->> 'max_attempts')::smallint, k.max_attempts, 3::smallint) as max_attempts,
           coalesce((p_defaults ->> 'timeout')::double precision, k.timeout_seconds) as timeout_seconds,
           -- Ids of one call grow with its order, also where the 22 bits of the sequence begin anew in the middle of
           -- it.
           fenceline.id_at(clock_timestamp()) - (nextval('fenceline.job_id') >> 22 << 22) as base
    from fenceline.setting s
    left join fenceline.kind k on k.name = p_kind
    join fenceline.lane n on n.name = coalesce(k.lane, p_defaults ->> 'lane', k.default_lane, 'default')
    where n.ageing_seconds is null and not n.fair and (not s.draining or p_origin <> 'outside')
      and p_origin in ('outside', 'child', 'schedule')
      and p_defaults -> 'retry' is null and p_kind ~ '^[a-z0-9_.-]{1,64}$'
  ), made as (
    insert into fenceline.job (id, priority, max_attempts, kind, lane, tenant, args, created_by, timeout_seconds)
    select r.base + nextval('fenceline.job_id'), r.priority, r.max_attempts, p_kind, r.lane, 'default', a.args, p_actor,
           r.timeout_seconds
    from route r cross join unnest(p_args) a(args)
    where r.max_attempts > 0 and not exists (
      select 1 from unnest(p_args) b
      where b is null or json_typeof(b) <> 'object' or strpos(b::text, '\u') > 0
         or octet_length(b::text) > r.max_args_bytes)
    returning id, priority, lane
  ), queued as (
    insert into fenceline.ready (job_id, seq, priority, lane, kind, tenant)
    select m.id, m.id, m.priority, m.lane, p_kind, 'default' from made m
  )
  select array_agg(m.id), min(m.lane) into v_ids, v_lane from made m;
  if exists (select 1 from fenceline.waiter w where w.lane = v_lane) then
    perform fenceline.wake(array[v_lane]);
  end if;
  return v_ids;
end;
$$;

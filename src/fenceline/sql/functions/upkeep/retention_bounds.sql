-- The shortest and the longest time that any finished job is kept.
-- roles: none
create or replace function fenceline.retention_bounds(out shortest interval, out longest interval)
language sql stable as $$
  select make_interval(secs => least(min(s.retention_seconds), min(r.seconds))),
         make_interval(secs => greatest(max(s.retention_seconds), max(r.seconds)))
  from fenceline.setting s
  left join (select v.value::double precision as seconds
             from fenceline.kind k
             cross join lateral jsonb_each_text(coalesce(k.retention, '{}') || coalesce(k.operator_retention, '{}')) v) r
    on true;
$$;

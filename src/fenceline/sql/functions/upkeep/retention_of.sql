-- How long a finished job is kept: an operator's word for its kind and status, else the decorator's, else the setting.
-- roles: none
create or replace function fenceline.retention_of(p_kind text, p_status text) returns interval
language sql stable as $$
  select make_interval(secs => coalesce(
    (select coalesce(k.operator_retention ->> p_status, k.retention ->> p_status)::double precision
     from fenceline.kind k where k.name = p_kind),
    (select s.retention_seconds from fenceline.setting s)));
$$;

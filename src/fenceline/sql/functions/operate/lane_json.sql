-- A lane's settings as JSON, with the kinds it lists.
-- roles: none
create or replace function fenceline.lane_json(p_lane fenceline.lane) returns jsonb
language sql stable as $$
  select to_jsonb(p_lane) || jsonb_build_object('kinds', coalesce(
    (select jsonb_agg(k.name order by k.name) from fenceline.kind k where k.lane = p_lane.name), '[]'));
$$;

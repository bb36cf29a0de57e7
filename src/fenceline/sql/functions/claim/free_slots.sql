-- How many more attempts of a lane may live now; null: any number. Exact where the caller holds the lane's lock.
-- roles: none
create or replace function fenceline.free_slots(p_lane fenceline.lane) returns integer
language plpgsql volatile as $$
begin
  if p_lane.slots is null then
    return null;
  end if;
  return p_lane.slots - (select count(*)::integer from fenceline.running r where r.counted and r.lane = p_lane.name);
end;
$$;

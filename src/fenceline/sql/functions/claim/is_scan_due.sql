-- True about once a second per lane, set of kinds and fleet: then a claim looks below the workers' lower bounds, for jobs
-- that were committed late or given back. Per set of kinds, because a claim finds only jobs of its own.
-- roles: none
create or replace function fenceline.is_scan_due(p_lane text, p_kinds text[]) returns boolean
language plpgsql as $$
declare
  v_kinds bigint := coalesce(hashtextextended(array_to_string(p_kinds, ','), 0), 0);
  v_scanned timestamptz;
  v_now timestamptz;
begin
  select s.scanned_at into v_scanned from fenceline.lane_scan s where s.lane = p_lane and s.kinds = v_kinds;
  v_now := fenceline.clock();  -- after the look: a scan that lies ahead of it means that the clock was set back
  if v_scanned > v_now - interval '1 second' and v_scanned <= v_now then
    return false;
  end if;
  if v_scanned is null then
    insert into fenceline.lane_scan (lane, kinds, scanned_at) values (p_lane, v_kinds, v_now) on conflict do nothing;
    return found;
  end if;
  perform 1 from fenceline.lane_scan s
  where s.lane = p_lane and s.kinds = v_kinds and s.scanned_at = v_scanned for update skip locked;
  if not found then
    return false;
  end if;
  update fenceline.lane_scan set scanned_at = v_now where lane = p_lane and kinds = v_kinds;
  return true;
end;
$$;

-- tidy_up, prune and create_partitions in one statement, for who does upkeep by hand, and for workers of 0.1.0. Workers do the
-- three in transactions of their own.
-- Returns how many jobs were forgotten; null when the work was not due.
-- Needs READ COMMITTED (FL016).
-- roles: worker
create or replace function fenceline.upkeep(p_interval_seconds double precision default 60) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_forgotten bigint;
begin
  perform fenceline.require_read_committed('upkeep');
  if not fenceline.tidy_up(p_interval_seconds) then
    return null;
  end if;
  v_forgotten := fenceline.prune();
  -- Last: from here on claims may wait for the end of this transaction.
  perform fenceline.create_partitions();
  return v_forgotten;
end;
$$;

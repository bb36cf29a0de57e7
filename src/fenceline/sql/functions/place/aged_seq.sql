-- The rank of a job in a lane where priority grows by one every p_ageing_seconds: its seq, earlier by priority × ageing.
-- roles: none
create or replace function fenceline.aged_seq(p_seq bigint, p_priority integer, p_ageing_seconds integer)
returns bigint
language sql immutable parallel safe as $$
  select p_seq - ((p_priority::bigint * coalesce(p_ageing_seconds, 0) * 1000) << 22);
$$;

-- The lowest id of a moment: milliseconds since 2024-01-01 UTC in the high 41 bits (until 2093), 22 bits of sequence.
-- roles: none
create or replace function fenceline.id_at(p_at timestamptz) returns bigint
language sql immutable strict parallel safe as $$
  select (floor(extract(epoch from p_at) * 1000)::bigint - 1704067200000) << 22;
$$;

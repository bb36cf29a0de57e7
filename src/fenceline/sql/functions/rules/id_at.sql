-- The lowest id of a moment: milliseconds since 2024-01-01 UTC in the high 41 bits (until 2093), 22 bits of sequence.
-- Stable, not immutable and not strict, though it is both: extract() is stable, and only so can the planner inline it,
-- which saves 50 µs of every enqueue.
-- roles: none
create or replace function fenceline.id_at(p_at timestamptz) returns bigint
language sql stable parallel safe as $$
  select (floor(extract(epoch from p_at) * 1000)::bigint - 1704067200000) << 22;
$$;

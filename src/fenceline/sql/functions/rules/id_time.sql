-- When an id was made, to the millisecond: the inverse of id_at. A job's created_at is not stored twice.
-- roles: reader
create or replace function fenceline.id_time(p_id bigint) returns timestamptz
language sql immutable strict parallel safe as $$
  select to_timestamp(((p_id >> 22) + 1704067200000) / 1000.0);
$$;

-- SHA-256 (hex) of a snapshot's canonical spelling: equal configurations have equal hashes, however they were written.
-- roles: producer, worker, reader
create or replace function fenceline.snapshot_hash(p_snapshot jsonb) returns text
language sql immutable strict parallel safe as $$
  select encode(sha256(convert_to(fenceline.canonical_json(p_snapshot), 'UTF8')), 'hex');
$$;

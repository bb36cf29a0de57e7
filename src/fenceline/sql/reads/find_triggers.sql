-- As trigger_keys, of triggers with Fenceline's own signature: for servers of version 0.1, which know no other.
-- roles: admin
create or replace function fenceline.find_triggers(p_name text)
returns table (tenant text, kind text, secret text, window_seconds integer, idempotency_header text, dedupe_header text,
               now double precision)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select k.tenant, k.kind, k.secret, k.window_seconds, k.idempotency_header, k.dedupe_header, k.now
  from fenceline.trigger_keys(p_name) k where k.scheme = 'fenceline';
$$;

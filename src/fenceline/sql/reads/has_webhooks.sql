-- Whether a delivery waits for somebody to make it.
-- roles: worker
create or replace function fenceline.has_webhooks() returns boolean
language sql stable security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off set jit = off as $$
  select exists (select 1 from fenceline.ready r where r.lane = 'webhooks' and r.kind = 'fenceline.webhook');
$$;

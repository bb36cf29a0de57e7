-- The deliveries of lanes that have jobs to be sent: null when there is none. Says so too while as many are under way as may be.
-- roles: none
create or replace function fenceline.messages_due() returns jsonb
language sql stable set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
  select jsonb_agg(distinct l.delivery) from fenceline.lane l
  where l.delivery <> 'postgres' and l.enabled and exists (select 1 from fenceline.ready r where r.lane = l.name);
$$;

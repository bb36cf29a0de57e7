-- What it takes to check a request to a trigger: every trigger of that name, whoever's; the secret that fits decides whose
-- is meant. One whose secret was replaced a while ago is there a second time, with the old one. `now` is the database's time, in
-- seconds since 1970.
-- roles: admin
create or replace function fenceline.trigger_keys(p_name text)
returns table (tenant text, kind text, scheme text, secret text, window_seconds integer, idempotency_header text,
               dedupe_header text, now double precision)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select t.tenant, t.kind, t.scheme, s.secret, t.window_seconds, t.idempotency_header, t.dedupe_header,
         extract(epoch from fenceline.clock())::double precision
  from fenceline.trigger t
  cross join lateral (
    select t.secret union all select t.previous_secret where t.previous_until > fenceline.clock()) s
  where t.name = p_name and t.enabled
  order by t.tenant limit 1000;
$$;

-- What a delivery of kind `fenceline.webhook` needs: address, secret, and the ended job as the view `jobs` shows it, as text. No
-- row when the hook is gone; `body` is null when the job is. While two secrets are valid there are two rows, the newer one first.
-- roles: worker
create or replace function fenceline.webhook_delivery(p_hook_id integer, p_job_id bigint, p_tenant text)
returns table (url text, secret text, body text)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select h.url, s.secret, fenceline.describe_job(p_job_id, p_tenant)::text
  from fenceline.hook h
  cross join lateral (
    select h.secret, 1 union all select h.previous_secret, 2 where h.previous_until > fenceline.clock()) s(secret, place)
  where h.id = p_hook_id and h.tenant = p_tenant
  order by s.place;
$$;

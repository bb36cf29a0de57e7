-- What a delivery of kind `fenceline.webhook` needs: address, secret, and the ended job as the view `jobs` shows it, as text. No
-- row when the hook is gone; `body` is null when the job is.
-- roles: worker
create or replace function fenceline.webhook_delivery(p_hook_id integer, p_job_id bigint, p_tenant text)
returns table (url text, secret text, body text)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select h.url, h.secret, fenceline.get_job(p_job_id, p_tenant)::text
  from fenceline.hook h where h.id = p_hook_id and h.tenant = p_tenant;
$$;

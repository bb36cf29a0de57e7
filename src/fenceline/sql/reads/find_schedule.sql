-- The stored name of a schedule for somebody who is bound to p_tenant: his own of that name, null when there is none. A name
-- that another tenant had first is stored as name@tenant; he neither sees nor says that. Null p_tenant: bound to none, says
-- stored names.
-- roles: none
create or replace function fenceline.find_schedule(p_name text, p_tenant text) returns text
language sql stable as $$
  select s.name from fenceline.schedule s
  where s.name in (p_name, p_name || '@' || p_tenant)
    and (p_tenant is null or strpos(p_name, '@') = 0 and coalesce(s.options ->> 'tenant', 'default') = p_tenant)
  order by length(s.name) limit 1;
$$;

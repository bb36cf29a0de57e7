-- The audit of operator actions, newest first; of one subject (a public job id, a lane, "system") or of all; by tenant,
-- actor and action. What concerns the whole fleet (lanes, drain, retention, roles) has no tenant and is in the audit of each.
-- roles: reader
create or replace function fenceline.list_events(
  p_subject text default null,
  p_limit integer default 100,
  p_cursor bigint default null,
  p_tenant text default null,
  p_actor text default null,
  p_action text default null
) returns table (id bigint, at timestamptz, actor text, action text, subject text, tenant text, reason text, before jsonb,
                 after jsonb)
language sql stable security definer set search_path = pg_catalog, pg_temp
-- Null filters fold away and constants pick the index.
set plan_cache_mode = force_custom_plan
as $$
  -- Two scans, each in the order of its index: with "or" there would be none.
  with own as (
    select e.* from fenceline.event e
    where (p_subject is null or e.subject = p_subject) and (p_cursor is null or e.id < p_cursor)
      and (p_tenant is null or e.tenant = p_tenant) and (p_actor is null or e.actor = p_actor)
      and (p_action is null or e.action = p_action)
    order by e.id desc limit p_limit
  ), of_all as (
    select e.* from fenceline.event e
    where p_tenant is not null and e.tenant is null
      and (p_subject is null or e.subject = p_subject) and (p_cursor is null or e.id < p_cursor)
      and (p_actor is null or e.actor = p_actor) and (p_action is null or e.action = p_action)
    order by e.id desc limit p_limit
  )
  select e.id, e.at, e.actor, e.action, e.subject, e.tenant, e.reason, e.before, e.after
  from (select * from own union all select * from of_all) e
  order by e.id desc limit p_limit;
$$;

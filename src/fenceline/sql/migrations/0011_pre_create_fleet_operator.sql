-- compatible_from: 1
--
-- Lanes, drain, workers, retention and limits concern every tenant: they leave the role of a tenant's operator. Those who
-- run the fleet have a role of their own. A seeded role that somebody has changed by hand stays as it is.

alter table fenceline.role drop constraint role_check;
alter table fenceline.role add constraint role_check
  check (not all_tenants or name in ('platform_admin', 'fleet_operator'));

-- jobs:manage is what an operator does to jobs of others: reprioritise, and take them from their workers. It was part of
-- workers:manage.
update fenceline.role set permissions = permissions || 'jobs:manage'::text
where 'workers:manage' = any(permissions) and not 'jobs:manage' = any(permissions);

update fenceline.role set permissions = array_remove(permissions, 'workers:manage')
where name = 'operator' and built_in
  and permissions = array['jobs:read', 'jobs:read_all', 'jobs:enqueue', 'jobs:cancel', 'jobs:approve', 'workers:view',
                          'workers:manage', 'schedules:manage', 'audit:read', 'jobs:manage'];

insert into fenceline.role (name, permissions, own_jobs, all_tenants, built_in) values
  ('fleet_operator', array['jobs:read', 'jobs:read_all', 'jobs:enqueue', 'jobs:cancel', 'jobs:approve', 'jobs:manage',
                           'workers:view', 'workers:manage', 'schedules:manage', 'audit:read'], false, true, true)
on conflict do nothing;

-- Every permission that a role may have; the server's routes ask for these. jobs:hide_args takes away: who has it sees no
-- args and results.
-- roles: none
create or replace function fenceline.known_permissions() returns text[]
language sql immutable parallel safe as $$
  select array['jobs:read', 'jobs:read_all', 'jobs:hide_args', 'jobs:enqueue', 'jobs:cancel', 'jobs:approve', 'jobs:manage', 'workers:view',
               'workers:manage', 'schedules:manage', 'hooks:manage', 'runners:claim', 'audit:read', 'tokens:manage', 'system:manage'];
$$;

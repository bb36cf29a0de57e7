-- A schedule's stored name as its tenant gave it: without "@tenant" (find_schedule).
-- roles: none
create or replace function fenceline.schedule_name(p_stored text) returns text
language sql immutable as $$
  select split_part(p_stored, '@', 1);
$$;

-- The kinds that a runner may be given, of those that it asks for (null: all): never Fenceline's own.
-- roles: none
create or replace function fenceline.runner_kinds(p_kinds text[]) returns text[]
language sql immutable parallel safe as $$
  select case when p_kinds is null then array['*']
              else array(select k from unnest(p_kinds) k where not starts_with(k, 'fenceline.') and k <> '*') end;
$$;

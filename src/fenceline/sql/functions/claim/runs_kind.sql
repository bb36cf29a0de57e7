-- Whether somebody who runs these kinds runs this one. Null: every kind. '*' in the first place: every kind but Fenceline's
-- own, which are for workers and servers only; that is a runner.
-- Inlined into the claims' plans: it must stay one expression.
-- roles: none
create or replace function fenceline.runs_kind(p_kinds text[], p_kind text) returns boolean
language sql immutable parallel safe as $$
  select p_kinds is null or p_kind = any(p_kinds) or (p_kinds[1] = '*' and not starts_with(p_kind, 'fenceline.'));
$$;

-- An "after" option with every "@ref" replaced by the id that the reference got.
-- roles: none
create or replace function fenceline.resolve_references(p_after jsonb, p_refs jsonb) returns jsonb
language sql immutable parallel safe as $$
  with resolved as (
    select jsonb_agg(case when a #>> '{}' like '@%' then p_refs -> substr(a #>> '{}', 2) else a end) as jobs
    from jsonb_array_elements(fenceline.after_list(p_after)) a
  )
  select case jsonb_typeof(p_after)
           when 'object' then p_after || jsonb_build_object('jobs', coalesce(resolved.jobs, '[]'))
           else coalesce(resolved.jobs, p_after) end
  from resolved;
$$;

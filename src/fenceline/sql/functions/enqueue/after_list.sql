-- The jobs in an "after" option: a list, or an object {"jobs": […], "group": name, "policy": "success" | "always"}.
-- roles: none
create or replace function fenceline.after_list(p_after jsonb) returns jsonb
language sql immutable parallel safe as $$
  select case jsonb_typeof(p_after)
           when 'array' then p_after
           when 'object' then case when jsonb_typeof(p_after -> 'jobs') = 'array' then p_after -> 'jobs' else '[]' end
           when 'string' then jsonb_build_array(p_after)
           when 'number' then jsonb_build_array(p_after)
           else '[]' end;
$$;

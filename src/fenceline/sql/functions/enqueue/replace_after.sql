-- An "after" option with other jobs in the place of some. p_by says which: by "@ref", or by internal id.
-- roles: none
create or replace function fenceline.replace_after(p_after jsonb, p_by jsonb) returns jsonb
language sql immutable parallel safe as $$
  with replaced as (
    select jsonb_agg(coalesce(p_by -> case when a #>> '{}' like '@%' then a #>> '{}'
                                           else fenceline.read_job_id(a)::text end, a)) as jobs
    from jsonb_array_elements(fenceline.after_list(p_after)) a
  )
  select case jsonb_typeof(p_after)
           when 'object' then p_after || jsonb_build_object('jobs', coalesce(replaced.jobs, '[]'))
           else coalesce(replaced.jobs, p_after) end
  from replaced;
$$;

-- An "after" option with other jobs in the place of some: p_instead says which, by internal id.
-- roles: none
create or replace function fenceline.redirect_after(p_after jsonb, p_instead jsonb) returns jsonb
language sql stable as $$
  with redirected as (
    select jsonb_agg(coalesce(p_instead -> fenceline.read_job_id(a)::text, a)) as jobs
    from jsonb_array_elements(fenceline.after_list(p_after)) a
  )
  select case jsonb_typeof(p_after)
           when 'object' then p_after || jsonb_build_object('jobs', coalesce(redirected.jobs, '[]'))
           else coalesce(redirected.jobs, p_after) end
  from redirected;
$$;

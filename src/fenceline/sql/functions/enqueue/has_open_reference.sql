-- Whether an "after" option names a job of the same call that has not been made yet.
-- roles: none
create or replace function fenceline.has_open_reference(p_after jsonb, p_refs jsonb) returns boolean
language sql immutable parallel safe as $$
  select exists (
    select 1 from jsonb_array_elements_text(fenceline.after_list(p_after)) a
    where a like '@%' and not p_refs ? a);
$$;

-- Jobs in a sentence: the ids of those that the reader may know of, and how many others there are.
-- p_ids       public ids, null for one that must not be named
-- p_count     how many there are in all
-- roles: none
create or replace function fenceline.say_jobs(p_ids text[], p_count bigint) returns text
language sql immutable parallel safe as $$
  select case
    when cardinality(n.named) = 0 then format('%s job%s', p_count, case when p_count = 1 then '' else 's' end)
    when p_count > cardinality(n.named)
      then format('%s and %s more', array_to_string(n.named, ', '), p_count - cardinality(n.named))
    else array_to_string(n.named, ', ') end
  from (select array_remove(p_ids, null) as named) n;
$$;

-- Whether a kind's own lane demands approval: also of jobs that ask for another lane, so that nobody goes round it.
--
-- p_default   the lane that the decorator names, where the enqueue knows it
-- roles: none
create or replace function fenceline.demands_approval(p_kind text, p_default text) returns boolean
language sql stable as $$
  select exists (
    select 1
    from (select 1) one
    left join fenceline.kind k on k.name = p_kind
    join fenceline.lane n on n.name = coalesce(k.lane, p_default, k.default_lane, 'default')
    where n.needs_approval);
$$;

-- Puts new jobs on the list of their parent, if that is still kept: the list goes when the parent does.
-- roles: none
create or replace function fenceline.note_children(p_parent bigint, p_children bigint[]) returns void
language sql as $$
  insert into fenceline.offspring (parent, child)
  select p_parent, c from unnest(p_children) c where exists (select 1 from fenceline.job j where j.id = p_parent);
$$;

-- Makes the jobs that attempts asked for (add_children), in the transaction that ended them well. A system drain lets
-- them through.
-- Raises as enqueue does; then the attempt has not ended either.
-- roles: none
create or replace function fenceline.make_children(p_job_ids bigint[], p_attempt_ids uuid[]) returns void
language plpgsql as $$
declare
  v_child fenceline.child;
  v_actor text;
begin
  for v_child in
    select c.* from fenceline.child c
    where c.job_id = any(p_job_ids) and c.attempt_id = any(p_attempt_ids)
    order by c.job_id, c.position
  loop
    select j.created_by into v_actor from fenceline.job j where j.id = v_child.job_id;
    perform fenceline.insert_jobs(v_child.kind, v_child.args, v_child.options, v_actor, v_child.defaults, 'child',
                                  v_child.ids);
  end loop;
  delete from fenceline.child c where c.job_id = any(p_job_ids);
end;
$$;

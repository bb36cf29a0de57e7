-- Makes the jobs that attempts asked for (add_children), in the transaction that ended them well. A system drain lets
-- them through. Where a key belongs to another job by now, that job takes the child's place, also for its siblings that
-- wait for it.
-- Raises as enqueue does; then the attempt has not ended either.
-- roles: none
create or replace function fenceline.make_children(p_job_ids bigint[], p_attempt_ids uuid[]) returns void
language plpgsql as $$
declare
  v_child fenceline.child;
  v_actor text;
  v_options jsonb;
  v_made record;
  v_instead jsonb := '{}';
begin
  for v_child in
    select c.* from fenceline.child c
    where c.job_id = any(p_job_ids) and c.attempt_id = any(p_attempt_ids)
    order by c.job_id, c.position
  loop
    select j.created_by into v_actor from fenceline.job j where j.id = v_child.job_id;
    v_options := v_child.options;
    if v_instead <> '{}' and v_options ? 'after' then
      v_options := v_options || jsonb_build_object('after', fenceline.replace_after(v_options -> 'after', v_instead));
    end if;
    v_made := fenceline.insert_jobs(v_child.kind, v_child.args, v_options::json, v_actor, v_child.defaults, 'child',
                                    v_child.ids);
    if v_made.job_ids <> v_child.ids then
      v_instead := v_instead || (select jsonb_object_agg(given::text, fenceline.public_id(made))
                                 from unnest(v_child.ids, v_made.job_ids) n(given, made) where given <> made);
    end if;
  end loop;
  delete from fenceline.child c where c.job_id = any(p_job_ids);
end;
$$;

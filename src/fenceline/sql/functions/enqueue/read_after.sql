-- The ids in an "after" option, sorted and distinct; a group stands for the jobs that are in it now, a retry in the place of
-- the job that it runs again.
-- Raises FL008 for a job that is not there (or another tenant's), FL020 for a group without jobs.
-- roles: none
create or replace function fenceline.read_after(p_tenant text, p_after jsonb) returns bigint[]
language plpgsql stable as $$
declare
  v_ids bigint[];
  v_members bigint[];
  v_group text;
  v_missing bigint;
begin
  v_ids := array(select fenceline.read_job_id(a) from jsonb_array_elements(fenceline.after_list(p_after)) a);
  if array_position(v_ids, null) is not null then
    raise exception using errcode = 'FL017', message = 'null is not a job id: "after" needs the ids of jobs';
  end if;
  select a.id into v_missing
  from unnest(v_ids) a(id)
  where not exists (select 1 from fenceline.job j where j.id = a.id and j.tenant = p_tenant)
  limit 1;
  if v_missing is not null then
    raise exception using errcode = 'FL008',
      message = format('job %s, which this one should wait for, does not exist', fenceline.public_id(v_missing));
  end if;
  if jsonb_typeof(p_after) = 'object' and p_after ->> 'group' is not null then
    v_group := p_after ->> 'group';
    v_members := array(
      select j.id from fenceline.job j
      where j.tenant = p_tenant and j.group_name = v_group
        and not exists (select 1 from fenceline.job r where r.retry_of = j.id and r.group_name = v_group));
    v_ids := v_ids || v_members;
    if cardinality(v_members) = 0 then
      raise exception using errcode = 'FL020',
        message = format('group %L has no jobs: enqueue its jobs before the one that waits for them', v_group);
    end if;
  end if;
  return array(select distinct i from unnest(v_ids) i order by i);
end;
$$;

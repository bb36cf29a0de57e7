-- Enqueues jobs of different kinds and options in one statement: a workflow, for instance.
--
-- p_jobs      JSON array of objects: "kind", "args", "defaults", "ref" and the options of enqueue. A job may name jobs
--             of the same call in "after" as "@ref", or by their group; they may stand later in the array.
-- Returns the ids in the order of p_jobs. Raises as enqueue does, and FL009 when the references go round.
-- roles: producer, worker
create or replace function fenceline.enqueue_jobs(
  p_jobs json,
  p_actor text default null,
  p_origin text default 'outside',
  out job_ids bigint[],
  out created boolean[]
)
language plpgsql security definer set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan as $$
declare
  v_jobs jsonb := fenceline.to_jsonb_checked('jobs', p_jobs);
  v_count integer;
  v_left integer[];
  v_later integer[];
  v_refs jsonb := '{}';  -- "@ref": the id that it got
  v_named text[];  -- the refs that "after" names: most jobs are waited for by their group, or by nobody
  v_ref text;
  v_job jsonb;
  v_made record;
  v_i integer;
begin
  if jsonb_typeof(v_jobs) is distinct from 'array' or jsonb_path_exists(v_jobs, 'strict $[*] ? (@.type() != "object")') then
    raise exception using errcode = 'FL007', message = 'jobs must be a JSON array of objects';
  end if;
  select j ->> 'ref' into v_ref from jsonb_array_elements(v_jobs) j where j ? 'ref' group by 1 having count(*) > 1 limit 1;
  if found then
    raise exception using errcode = 'FL007',
      message = format('ref %L names more than one job: each job of a call needs a ref of its own', v_ref);
  end if;
  perform fenceline.check_after(j -> 'after') from jsonb_array_elements(v_jobs) j where j ->> 'after' is not null;
  v_named := array(
    select distinct a from jsonb_array_elements(v_jobs) j
    cross join lateral jsonb_array_elements_text(fenceline.after_list(j -> 'after')) a where a like '@%');
  v_count := jsonb_array_length(v_jobs);
  p_origin := fenceline.public_origin(p_origin);
  if (select s.limits_tenants from fenceline.setting s) then  -- all of them, not one by one
    perform fenceline.check_tenant_limit(n.tenant, n.jobs)
    from (select coalesce(j ->> 'tenant', 'default') as tenant, count(*)::integer as jobs
          from jsonb_array_elements(v_jobs) j where not j ?| array['dedupe_key', 'idempotency_key'] group by 1) n;
  end if;
  v_left := array(select i from generate_series(1, v_count) i);
  job_ids := array_fill(null::bigint, array[v_count]);
  created := array_fill(null::boolean, array[v_count]);

  while cardinality(v_left) > 0 loop
    v_later := '{}';
    foreach v_i in array v_left loop
      v_job := v_jobs -> (v_i - 1);
      if fenceline.has_open_reference(v_job -> 'after', v_refs)
         or (v_job #> '{after,group}' is not null and exists (
           select 1 from unnest(v_left[array_position(v_left, v_i) :] || v_later) i
           where v_jobs #>> array[(i - 1)::text, 'group'] = v_job #>> '{after,group}')) then
        v_later := v_later || v_i;
        continue;
      end if;
      v_made := fenceline.insert_jobs(
        v_job ->> 'kind',
        array[coalesce(v_job -> 'args', '{}')::json],
        (v_job - array['kind', 'args', 'defaults', 'ref']
          || case when v_job ? 'after'
                  then jsonb_build_object('after', fenceline.replace_after(v_job -> 'after', v_refs))
                  else '{}' end)::json,
        p_actor, (v_job -> 'defaults')::json, p_origin);
      job_ids[v_i] := v_made.job_ids[1];
      created[v_i] := coalesce(v_made.created[1], true);
      if '@' || (v_job ->> 'ref') = any(v_named) then
        v_refs := v_refs || jsonb_build_object('@' || (v_job ->> 'ref'), job_ids[v_i]);
      end if;
    end loop;
    if cardinality(v_later) = cardinality(v_left) then
      raise exception using errcode = 'FL009',
        message = format('the jobs at positions %s wait for each other or for a reference that is not there: '
                         '"after" must lead to jobs that can run first', array_to_string(v_later, ', '));
    end if;
    v_left := v_later;
  end loop;
end;
$$;

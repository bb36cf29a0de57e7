-- One verb on many jobs: those of a list, or one page of those that a filter finds. Each is its own little transaction:
-- what one refuses does not stop the others.
--
-- p_verb, p_actor, p_tenant, p_created_by, p_reason, p_force, p_priority   as in act_on_job
-- p_dry_run   do it all, count, and undo it: what it would say is what it says
-- p_job_ids   the jobs; null: those that p_statuses … p_created_before find (as in list_jobs), below p_cursor
-- Returns how many there were, how many were changed, how many were refused by SQLSTATE, and the cursor of the next page
-- (null: there is none). Raises FL007 (verb, status).
-- roles: admin
create or replace function fenceline.bulk_jobs(
  p_verb text,
  p_actor text,
  p_tenant text,
  p_created_by text,
  p_reason text,
  p_force boolean,
  p_priority integer,
  p_dry_run boolean,
  p_job_ids bigint[],
  p_statuses text[] default null,
  p_kinds text[] default null,
  p_lanes text[] default null,
  p_tenants text[] default null,
  p_labels jsonb default null,
  p_created_after timestamptz default null,
  p_created_before timestamptz default null,
  p_limit integer default 200,
  p_cursor bigint default null,
  out matched integer,
  out changed integer,
  out refused jsonb,
  out next_cursor bigint
)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_job_id bigint;
begin
  if p_verb is null or p_verb not in ('cancel', 'retry', 'approve', 'reject', 'reprioritise') then
    raise exception using errcode = 'FL007', message = format('verb %L is unknown', p_verb);
  end if;
  if p_job_ids is null then
    perform fenceline.check_statuses(p_statuses);
    select f.job_ids, f.next_cursor into p_job_ids, next_cursor
    from fenceline.find_jobs(p_statuses, p_kinds, p_lanes, p_tenants, p_labels, p_created_after, p_created_before,
                             p_created_by, p_limit, p_cursor) f;
  end if;
  matched := cardinality(p_job_ids);
  changed := 0;
  refused := '{}';
  begin
    if p_verb = 'retry' then
      p_job_ids := fenceline.retry_order(p_job_ids);
    else
      p_job_ids := array(select i from unnest(p_job_ids) i order by i);
    end if;
    foreach v_job_id in array p_job_ids loop
      begin
        perform fenceline.act_on_job(v_job_id, p_verb, p_actor, p_tenant, p_created_by, p_reason, p_force, p_priority);
        changed := changed + 1;
      exception when sqlstate 'FL001' or sqlstate 'FL002' or sqlstate 'FL005' or sqlstate 'FL008' or sqlstate 'FL010'
                or sqlstate 'FL011' or sqlstate 'FL013' or sqlstate 'FL023' or sqlstate 'FL055' or sqlstate 'FL070'
                or sqlstate 'FL071' then
        -- its lane gone, a kind of ours, larger than is allowed now, a dependency gone, gone itself, wrong status, locked,
        -- too many, args erased, his own job, not his identity
        refused := refused || jsonb_build_object(sqlstate, coalesce((refused ->> sqlstate)::integer, 0) + 1);
      end;
    end loop;
    if p_dry_run then
      raise exception using errcode = 'FLDRY', message = 'a dry run is undone';
    end if;
  exception when sqlstate 'FLDRY' then null;  -- the rows are as before; the counts stay
  end;
end;
$$;

-- The id itself, if there is such a job for somebody bound to a tenant (null: to none) who may see only what p_created_by
-- enqueued (null: all). Raises FL010 for a job that is missing, foreign, or past its retention: all alike.
-- roles: producer, worker, reader
create or replace function fenceline.visible_job_id(p_job_id bigint, p_tenant text, p_created_by text) returns bigint
language plpgsql stable security definer set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off as $$
begin
  perform 1 from fenceline.job j
  where j.id = p_job_id and (p_tenant is null or j.tenant = p_tenant)
    and (p_created_by is null or j.created_by = p_created_by)
    and not exists (
      select 1 from fenceline.history h
      where h.job_id = p_job_id and h.final
        and h.ended_at < fenceline.clock() - fenceline.retention_of(j.kind, h.outcome));
  if not found then
    raise exception using errcode = 'FL010',
      message = format('job %s does not exist', coalesce(fenceline.public_id(p_job_id), 'null'));
  end if;
  return p_job_id;
end;
$$;

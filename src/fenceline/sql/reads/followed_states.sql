-- As followed_jobs, without log lines, for a view of many jobs: args, result, error, errors and progress that are longer
-- than p_max_bytes are cut (cut_value).
-- roles: admin
create or replace function fenceline.followed_states(p_job_ids bigint[], p_max_bytes integer)
returns table (job_id bigint, stamp bigint, job jsonb, status text, progress jsonb, status_version bigint,
               progress_version bigint, lines jsonb[])
language sql stable security definer set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off as $$
  select f.job_id, f.stamp, f.job || c.cut, f.status, f.progress || (c.cut - array['args', 'result', 'error', 'errors']),
         f.status_version, f.progress_version, f.lines
  from fenceline.followed_jobs(
    p_job_ids, array_fill(0::bigint, array[cardinality(p_job_ids)]), array_fill(0, array[cardinality(p_job_ids)]), 0) f
  left join lateral (
    select coalesce(jsonb_object_agg(n.name, fenceline.cut_value(f.job -> n.name, p_max_bytes)), '{}') as cut
    from unnest(array['args', 'result', 'error', 'errors', 'progress']) n(name)
    where octet_length((f.job -> n.name)::text) > p_max_bytes) c on true;
$$;

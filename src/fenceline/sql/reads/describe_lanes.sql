-- Lanes as `lanes` shows them, as JSON, with the settings that have been added since, and how many suspects of a crash wait
-- to be run alone (ready_alone) or run.
-- roles: producer, worker, reader
create or replace function fenceline.describe_lanes(p_name text default null, p_tenant text default null)
returns setof jsonb
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select to_jsonb(s) || jsonb_build_object(
           'needs_approval', n.needs_approval, 'offline_timeout_seconds', n.offline_timeout_seconds,
           'updated_at', n.updated_at, 'delivery', n.delivery,
           'unsent', case when n.delivery <> 'postgres' then greatest(
             s.depth - (select count(*) from fenceline.message m where m.lane = s.name), 0) end,
           'suspects_waiting', (select count(*) from fenceline.ready r
             where r.lane = s.name and r.deaths is not null and (p_tenant is null or r.tenant = p_tenant)),
           'suspects_running', (select count(*) from fenceline.running r
             where r.lane = s.name and r.deaths is not null
               and (p_tenant is null
                    or exists (select 1 from fenceline.job j where j.id = r.job_id and j.tenant = p_tenant))))
  from fenceline.lanes(p_name, p_tenant) s join fenceline.lane n on n.name = s.name
  order by s.name;
$$;

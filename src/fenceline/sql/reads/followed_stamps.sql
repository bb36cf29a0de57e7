-- A number per job that is another one whenever anything a live view shows has changed: the cheap half of polling.
-- roles: admin
create or replace function fenceline.followed_stamps(p_job_ids bigint[]) returns table (job_id bigint, stamp bigint)
language sql stable security definer set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off as $$
  select i, hashtextextended(concat_ws('|',
    (select 'r' || concat_ws(' ', r.token, r.started_at, r.cancel_requested_at) from fenceline.running r
     where r.job_id = i),
    (select 'q' || concat_ws(' ', r.priority, r.own_priority, r.lane, r.token) from fenceline.ready r where r.job_id = i),
    (select 't' || concat_ws(' ', t.run_at, t.priority, t.lane, t.token) from fenceline.timer t where t.job_id = i),
    (select 'h' || concat_ws(' ', h.waiting_for, h.priority, h.lane, h.token) from fenceline.held h where h.job_id = i),
    (select 'e' || h.ended_at from fenceline.history h where h.job_id = i and h.final),
    (select 'p' || p.updated_at from fenceline.progress p where p.job_id = i),
    (select 'l' || concat_ws(' ', l.token, l.line) from fenceline.log l where l.job_id = i
     order by l.token desc, l.line desc limit 1),
    (select 'j' from fenceline.job j where j.id = i)), 0)
  from unnest(p_job_ids) i;
$$;

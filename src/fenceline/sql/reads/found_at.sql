-- The newest jobs between two ids that are with one of these workers, or ended with one (null: any), and whose last phase
-- is this one (null: any; one of the two is given): at most p_limit.
-- roles: none
create or replace function fenceline.found_at(
  p_workers integer[],
  p_phase text,
  p_from bigint,
  p_below bigint,
  p_limit integer
) returns bigint[]
language plpgsql stable as $$
begin
  if p_workers is null then
    return array(
      select p.job_id from fenceline.progress p
      where p.job_id >= p_from and p.job_id < p_below and p.phase = p_phase
      order by p.job_id desc limit p_limit);
  end if;
  return array(
    select w.job_id from (
      (select r.job_id from fenceline.running r
       where r.job_id >= p_from and r.job_id < p_below and r.worker_id = any(p_workers)
         and (p_phase is null or exists (
           select 1 from fenceline.progress p where p.job_id = r.job_id and p.phase = p_phase))
       order by r.job_id desc limit p_limit)
      union all
      (select h.job_id from fenceline.history h
       where h.job_id >= p_from and h.job_id < p_below and h.final and h.worker_id = any(p_workers)
         and (p_phase is null or exists (
           select 1 from fenceline.progress p where p.job_id = h.job_id and p.phase = p_phase))
       order by h.job_id desc limit p_limit)) w
    order by w.job_id desc limit p_limit);
end;
$$;

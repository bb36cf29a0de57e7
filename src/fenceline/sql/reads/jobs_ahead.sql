-- How many jobs come before a queued one, of the first 1000 there: among suspects for a suspect, among its tenant's in a
-- lane that is fair, else in its lane; only those of p_tenant are counted (null: all).
-- Plans: two ranges of an index each. As one condition, what comes after the job would be read through too.
-- roles: none
create or replace function fenceline.jobs_ahead(p_ready fenceline.ready, p_tenant text) returns bigint
language plpgsql stable as $$
declare
  c_counted constant integer := 1000;
begin
  if p_ready.deaths is not null then
    return (
      select count(*) filter (where p_tenant is null or a.tenant = p_tenant) from (
        (select r.tenant from fenceline.ready r
         where r.deaths is not null and r.lane = p_ready.lane and r.priority > p_ready.priority limit c_counted)
        union all
        (select r.tenant from fenceline.ready r
         where r.deaths is not null and r.lane = p_ready.lane and r.priority = p_ready.priority and r.seq < p_ready.seq
         limit c_counted)
        limit c_counted) a);
  elsif p_ready.fair then
    return (
      select count(*) from (
        (select 1 from fenceline.ready r
         where r.fair and r.lane = p_ready.lane and r.tenant = p_ready.tenant and r.priority > p_ready.priority
         limit c_counted)
        union all
        (select 1 from fenceline.ready r
         where r.fair and r.lane = p_ready.lane and r.tenant = p_ready.tenant and r.priority = p_ready.priority
           and r.seq < p_ready.seq limit c_counted)
        limit c_counted) a);
  end if;
  return (
    select count(*) filter (where p_tenant is null or a.tenant = p_tenant) from (
      (select r.tenant from fenceline.ready r
       where r.lane = p_ready.lane and r.priority > p_ready.priority limit c_counted)
      union all
      (select r.tenant from fenceline.ready r
       where r.lane = p_ready.lane and r.priority = p_ready.priority and r.seq < p_ready.seq limit c_counted)
      limit c_counted) a);
end;
$$;

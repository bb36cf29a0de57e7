-- Removes what is kept beside `job` and `history` of the jobs from p_from to below p_to, but for those in p_except: at most
-- p_limit rows of each table. Returns whether that was all.
-- roles: none
create or replace function fenceline.forget_details(p_from bigint, p_to bigint, p_except bigint[], p_limit integer)
returns boolean
language plpgsql as $$
declare
  v_count integer;
  v_most integer := 0;
begin
  delete from fenceline.log where ctid = any(array(
    select t.ctid from fenceline.log t
    where t.job_id >= p_from and t.job_id < p_to and t.job_id <> all (p_except) limit p_limit));
  get diagnostics v_count = row_count;
  v_most := greatest(v_most, v_count);
  delete from fenceline.progress where ctid = any(array(
    select t.ctid from fenceline.progress t
    where t.job_id >= p_from and t.job_id < p_to and t.job_id <> all (p_except) limit p_limit));
  get diagnostics v_count = row_count;
  v_most := greatest(v_most, v_count);
  delete from fenceline.phase where ctid = any(array(
    select t.ctid from fenceline.phase t
    where t.job_id >= p_from and t.job_id < p_to and t.job_id <> all (p_except) limit p_limit));
  get diagnostics v_count = row_count;
  v_most := greatest(v_most, v_count);
  delete from fenceline.step where ctid = any(array(
    select t.ctid from fenceline.step t
    where t.job_id >= p_from and t.job_id < p_to and t.job_id <> all (p_except) limit p_limit));
  get diagnostics v_count = row_count;
  v_most := greatest(v_most, v_count);
  delete from fenceline.checkpoint where ctid = any(array(
    select t.ctid from fenceline.checkpoint t
    where t.job_id >= p_from and t.job_id < p_to and t.job_id <> all (p_except) limit p_limit));
  get diagnostics v_count = row_count;
  v_most := greatest(v_most, v_count);
  delete from fenceline.refused_write where ctid = any(array(
    select t.ctid from fenceline.refused_write t
    where t.job_id >= p_from and t.job_id < p_to and t.job_id <> all (p_except) limit p_limit));
  get diagnostics v_count = row_count;
  v_most := greatest(v_most, v_count);
  delete from fenceline.wait where ctid = any(array(
    select t.ctid from fenceline.wait t
    where t.job_id >= p_from and t.job_id < p_to and t.job_id <> all (p_except) limit p_limit));
  get diagnostics v_count = row_count;
  v_most := greatest(v_most, v_count);
  delete from fenceline.signal where ctid = any(array(
    select t.ctid from fenceline.signal t
    where t.job_id >= p_from and t.job_id < p_to and t.job_id <> all (p_except) limit p_limit));
  get diagnostics v_count = row_count;
  v_most := greatest(v_most, v_count);
  delete from fenceline.callback where ctid = any(array(
    select t.ctid from fenceline.callback t
    where t.job_id >= p_from and t.job_id < p_to and t.job_id <> all (p_except) limit p_limit));
  get diagnostics v_count = row_count;
  v_most := greatest(v_most, v_count);
  delete from fenceline.offspring where ctid = any(array(
    select t.ctid from fenceline.offspring t
    where t.parent >= p_from and t.parent < p_to and t.parent <> all (p_except) limit p_limit));
  get diagnostics v_count = row_count;
  v_most := greatest(v_most, v_count);
  return v_most < p_limit;
end;
$$;

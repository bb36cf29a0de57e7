-- What happened, in order, after a place in the journal. First gives the new rows their places: one reader at a time, under
-- a lock that it keeps until its commit, so that nobody ever sees a place before a lower one.
-- What is older than two minutes, or more than a million places back, is forgotten: a reader that finds a place left out
-- has missed something.
-- roles: admin
create or replace function fenceline.read_journal(
  p_after bigint,
  p_limit integer default 1000,
  out place bigint,
  out job_id bigint,
  out at timestamptz,
  out token bigint,
  out first_line integer,
  out last_line integer
) returns setof record
language plpgsql security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off set jit = off as $$
declare
  v_oldest record;
begin
  if exists (select 1 from fenceline.journal j where j.position is null)
     and pg_try_advisory_xact_lock(1179926090, 1) then
    -- By time: of one job's changes the earlier was committed before the later was made, by the lock on its row.
    update fenceline.journal j set position = f.place
    from (select n.ctid as row, nextval('fenceline.journal_position') as place
          from (select u.ctid from fenceline.journal u where u.position is null order by u.at limit 10000) n) f
    where j.ctid = f.row;
    select o.position, o.at into v_oldest from fenceline.journal o
    where o.position is not null order by o.position limit 1;
    if v_oldest.at < fenceline.clock() - interval '2 minutes'
       or v_oldest.position < (select s.last_value from fenceline.journal_position s) - 1000000 then
      delete from fenceline.journal j where j.position < v_oldest.position + 10000
        and (j.at < fenceline.clock() - interval '2 minutes'
             or j.position < (select s.last_value from fenceline.journal_position s) - 1000000);
    end if;
  end if;
  return query
  select j.position, j.job_id, j.at, j.token, j.first_line, j.last_line from fenceline.journal j
  where j.position > p_after order by j.position limit p_limit;
end;
$$;

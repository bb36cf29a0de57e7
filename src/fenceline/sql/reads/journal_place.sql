-- The place in the journal from which a reader goes on that had read up to p_after (null: a new one, from the newest).
-- Null when something after it is not there any more.
-- roles: admin
create or replace function fenceline.journal_place(p_after bigint default null) returns bigint
language sql stable security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off set jit = off as $$
  select case when p_after is null then s.last_value
              when p_after = s.last_value or exists (select 1 from fenceline.journal j where j.position = p_after + 1)
              then p_after end
  from fenceline.journal_position s;
$$;

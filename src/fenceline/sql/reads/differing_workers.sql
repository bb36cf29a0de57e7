-- Live workers of the same lanes of which some have all the handlers of the others, and more: as in a deployment that has
-- not ended. `missing` are the kinds that the others lack.
-- roles: reader
create or replace function fenceline.differing_workers() returns table (
  lanes text[], missing text[], workers bigint, others bigint, example text, since timestamptz
)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  with fleet as (
    select w.lanes, array(select distinct k from unnest(w.kinds) k order by k) as kinds, w.name, w.started_at
    from fenceline.worker w
    where w.stopped_at is null and w.lease_until >= fenceline.clock() and w.kinds is not null and not w.runner
  ), sets as (
    select f.lanes, f.kinds, count(*) as workers, min(f.name) as name, min(f.started_at) as started_at
    from fleet f group by f.lanes, f.kinds
  )
  select n.lanes, array(select k from unnest(n.kinds) k where k <> all(o.kinds) order by k limit 20), n.workers, o.workers,
         o.name, n.started_at
  from sets n join sets o on o.lanes is not distinct from n.lanes and o.kinds <@ n.kinds and o.kinds <> n.kinds
  where cardinality(o.kinds) > 0
  order by n.started_at;
$$;

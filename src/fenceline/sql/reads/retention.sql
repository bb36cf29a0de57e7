-- How long finished jobs are kept: a row per kind that has a word of its own and per status, and one row without kind,
-- the default of all others. `said_by`: operator, decorator or default.
-- roles: reader
create or replace function fenceline.retention() returns table (
  kind text, status text, seconds double precision, said_by text
)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select null, null, s.retention_seconds::double precision, 'default' from fenceline.setting s
  union all
  (select k.name, o.status, extract(epoch from fenceline.retention_of(k.name, o.status))::double precision,
          case when k.operator_retention ? o.status then 'operator' when k.retention ? o.status then 'decorator'
               else 'default' end
   from fenceline.kind k
   cross join unnest(array['succeeded', 'succeeded_with_errors', 'failed', 'cancelled']) with ordinality o (status, place)
   where k.operator_retention is not null or k.retention is not null
   order by k.name, o.place);
$$;

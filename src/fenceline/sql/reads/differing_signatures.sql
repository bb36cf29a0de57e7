-- Kinds whose handlers take different args on different live workers, as in a deployment that has not ended: by kind, each
-- signature with what it takes, how many workers have it and since when. `refused`: jobs that some of them have refused.
-- roles: reader
create or replace function fenceline.differing_signatures() returns table (kind text, signatures jsonb, refused bigint)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  with known as (
    select split_part(s.key, ' ', 1) as kind, s.key as signature, s.value, count(*) as workers, min(w.name) as example,
           min(w.started_at) as since
    from fenceline.worker w cross join lateral jsonb_each(w.signatures) s
    where w.stopped_at is null and w.lease_until >= fenceline.clock()
    group by 1, 2, 3
  )
  select k.kind,
         jsonb_agg(jsonb_build_object('takes', k.value -> 'takes', 'extra', k.value -> 'extra', 'workers', k.workers,
                                      'example', k.example, 'since', k.since) order by k.since),
         (select count(*) from fenceline.refusal f where f.signatures && array_agg(k.signature))
  from known k group by k.kind having count(*) > 1 order by k.kind;
$$;

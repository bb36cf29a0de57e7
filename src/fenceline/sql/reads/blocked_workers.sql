-- Live workers whose event loop does not turn: for how long, and whose handler is on it, where that is known.
-- roles: producer, worker, reader
create or replace function fenceline.blocked_workers() returns table (
  worker_id integer, name text, seconds double precision, job text
)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select w.id, w.name, extract(epoch from fenceline.clock() - w.blocked_at)::double precision,
         fenceline.public_id(w.blocked_by)
  from fenceline.worker w where w.stopped_at is null and w.blocked_at is not null order by w.id;
$$;

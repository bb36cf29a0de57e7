-- A worker says what its handlers take. Returns the worker's id.
--
-- p_signatures   by signature, "kind hash": {"takes": {parameter: whether it must be given}, "extra": whether the handler
--                ignores what it does not know}. Handlers with the same signature take the same args. Anything but an object: it
--                says nothing
-- roles: worker
create or replace function fenceline.declare_signatures(p_worker_id integer, p_signatures jsonb) returns integer
language sql security definer set search_path = pg_catalog, pg_temp as $$
  update fenceline.worker set signatures = case jsonb_typeof(p_signatures) when 'object' then p_signatures end
  where id = p_worker_id returning id;
$$;

-- A worker or runner as addressed jobs know it, and refused ones: {"id": …, "name": …, "labels": {…}}.
-- roles: none
create or replace function fenceline.claimer(p_worker_id integer) returns jsonb
language sql stable as $$
  select jsonb_build_object('id', w.id, 'name', w.name, 'labels', coalesce(w.labels, '{}')) from fenceline.worker w
  where w.id = p_worker_id;
$$;

-- Notes that the handler of a worker refused the args of the job that this attempt was of. Returns the signatures of all who
-- have refused it by now; null: the worker has never said what its handlers take.
-- roles: none
create or replace function fenceline.note_refusal(p_run fenceline.running, p_kind text) returns text[]
language sql as $$
  insert into fenceline.refusal as f (job_id, signatures, refused_at)
  select p_run.job_id, array[s.key], fenceline.clock()
  from fenceline.worker w cross join lateral jsonb_object_keys(w.signatures) s(key)
  where w.id = p_run.worker_id and split_part(s.key, ' ', 1) = p_kind
  on conflict (job_id) do update
    set signatures = array(select distinct t from unnest(f.signatures || excluded.signatures) t order by t),
        refused_at = excluded.refused_at
  returning f.signatures;
$$;

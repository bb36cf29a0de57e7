-- Moves items of a live attempt's progress into one of the sets in_progress, completed, skipped (with a reason) and failed
-- (with an error), out of whichever they were in. The row lock makes moves of concurrent coroutines atomic.
--
-- p_why       reason or error, for skipped and failed
-- Returns how many items each set has. Raises FL012, FL007, FL005.
-- roles: worker
create or replace function fenceline.move_items(
  p_job_id bigint,
  p_attempt_id uuid,
  p_to text,
  p_items text[],
  p_why text default null
) returns jsonb
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_progress jsonb;
  v_items jsonb;
  v_moved jsonb;
  v_now timestamptz := fenceline.clock();
begin
  if p_to is null or p_to not in ('in_progress', 'completed', 'skipped', 'failed') then
    raise exception using errcode = 'FL007',
      message = format('items cannot be moved to %L: use in_progress, completed, skipped or failed', p_to);
  end if;
  if exists (select 1 from unnest(p_items) i where i is null or length(i) not between 1 and 500) then
    raise exception using errcode = 'FL007', message = 'an item needs a name of 1 to 500 characters';
  end if;
  perform fenceline.live_attempt(p_job_id, p_attempt_id);
  perform fenceline.keep_phase(p_job_id, p_attempt_id, null);
  insert into fenceline.progress as p (job_id, attempt_id, updated_at, started_at)
  values (p_job_id, p_attempt_id, v_now, v_now)
  on conflict (job_id) do update set
    attempt_id = excluded.attempt_id, updated_at = excluded.updated_at,
    started_at = case when p.attempt_id = excluded.attempt_id then p.started_at else excluded.started_at end,
    phase = case when p.attempt_id = excluded.attempt_id then p.phase end,
    progress = case when p.attempt_id = excluded.attempt_id then p.progress end
  returning coalesce(p.progress, '{}') into v_progress;

  v_items := jsonb_build_object('in_progress', '[]'::jsonb, 'completed', '[]'::jsonb, 'skipped', '[]'::jsonb,
                                'failed', '[]'::jsonb) || coalesce(v_progress -> 'items', '{}');
  select jsonb_object_agg(s.key, coalesce((
           select jsonb_agg(e.item order by e.n) from jsonb_array_elements(s.value) with ordinality e(item, n)
           where (case when jsonb_typeof(e.item) = 'object' then e.item ->> 'item' else e.item #>> '{}' end) <> all(p_items)),
         '[]'::jsonb))
    into v_items
  from jsonb_each(v_items) s;
  select coalesce(jsonb_agg(case p_to
           when 'skipped' then jsonb_build_object('item', i, 'reason', p_why)
           when 'failed' then jsonb_build_object('item', i, 'error', p_why)
           else to_jsonb(i) end order by n), '[]')
    into v_moved
  from (select distinct on (i) i, n from unnest(p_items) with ordinality u(i, n)) d;
  v_items := jsonb_set(v_items, array[p_to], (v_items -> p_to) || v_moved);
  v_progress := v_progress || jsonb_build_object('items', v_items);
  perform fenceline.check_size('the progress', v_progress);
  update fenceline.progress set progress = v_progress where job_id = p_job_id;
  if exists (select 1 from fenceline.follow) then
    perform fenceline.tell_followers(array[p_job_id]);
  end if;
  return (select jsonb_object_agg(s.key, jsonb_array_length(s.value)) from jsonb_each(v_items) s);
end;
$$;

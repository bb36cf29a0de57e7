-- Raises FL007 unless every value is a status.
-- roles: none
create or replace function fenceline.check_statuses(p_statuses text[]) returns void
language plpgsql immutable as $$
declare
  v_bad text;
begin
  select coalesce(s, 'null') into v_bad from unnest(p_statuses) s
  where s is null
     or s <> all (array['awaiting_approval', 'waiting', 'scheduled', 'queued', 'claimed', 'running', 'succeeded',
                        'succeeded_with_errors', 'failed', 'cancelled']) limit 1;
  if v_bad is not null then
    raise exception using errcode = 'FL007', message = format('status %L is unknown', v_bad);
  end if;
end;
$$;

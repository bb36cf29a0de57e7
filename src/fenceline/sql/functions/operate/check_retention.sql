-- Raises FL007 unless a kind's retention is an object of statuses and seconds: prune must be able to read every one.
-- roles: none
create or replace function fenceline.check_retention(p_kind text, p_retention jsonb) returns void
language plpgsql immutable as $$
begin
  if p_retention is null then
    return;
  end if;
  if jsonb_typeof(p_retention) <> 'object'
     or p_retention - array['succeeded', 'succeeded_with_errors', 'failed', 'cancelled'] <> '{}'
     or jsonb_path_exists(p_retention, 'strict $.* ? (@.type() != "number" || @ < 0 || @ > 10000000000)') then
    raise exception using errcode = 'FL007',
      message = format('retention %s of kind %L is not valid: use an object with seconds for succeeded, '
                       'succeeded_with_errors, failed and cancelled', left(p_retention::text, 200), p_kind);
  end if;
end;
$$;

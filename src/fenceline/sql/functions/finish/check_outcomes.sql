-- Raises FL007 for an outcome that finish_attempts does not know and for seconds out of range, FL005 for a result or a
-- list of errors over the limit.
-- roles: none
create or replace function fenceline.check_outcomes(
  p_outcomes text[],
  p_results jsonb[],
  p_error_lists jsonb[],
  p_delays double precision[],
  p_ran_seconds double precision[]
) returns void
language plpgsql stable as $$
declare
  v_bad text;
  v_most integer;
begin
  if p_outcomes is not null then
    select o into v_bad from unnest(p_outcomes) o
    where o <> all (array['succeeded', 'succeeded_with_errors', 'failed', 'failed_for_good', 'cancelled', 'snoozed',
                          'waiting', 'released', 'refused']) limit 1;
    if v_bad is not null then
      raise exception using errcode = 'FL007',
        message = format('outcome %L is unknown: use succeeded, succeeded_with_errors, failed, failed_for_good, '
                         'cancelled, snoozed, waiting, released or refused', v_bad);
    end if;
  end if;
  if p_delays is not null or p_ran_seconds is not null then
    select s into v_bad from unnest(p_delays || p_ran_seconds) s where s not between 0 and 1e9 limit 1;
    if v_bad is not null then
      raise exception using errcode = 'FL007',
        message = format('a delay or duration of %s seconds is out of range: use 0 to 1000000000', v_bad);
    end if;
  end if;
  if p_results is not null or p_error_lists is not null then
    select s.max_result_bytes into v_most from fenceline.setting s;
    select pg_column_size(r)::text into v_bad from unnest(p_results || p_error_lists) r
    where pg_column_size(r) > v_most limit 1;
    if v_bad is not null then
      raise exception using errcode = 'FL005',
        message = format('a result has %s bytes: at most %s are allowed', v_bad, v_most),
        hint = 'Store large data elsewhere and return a reference.';
    end if;
  end if;
end;
$$;

-- Seconds to wait after attempt p_number failed.
--
-- p_policy    {"backoff": "quadratic" | "exponential" | "fixed" | [s1, s2, …], "base": seconds, "jitter": 0..1,
--             "max_delay": seconds}; null is the default: quadratic, base 2, jitter 0.1, at most a day
-- quadratic: base × n²; exponential: base × 2^(n-1); fixed: base; a list: its nth delay, then its last.
-- Jitter adds up to that share of the delay, so that what failed together does not come back together.
-- Raises FL007 for a policy that cannot be read.
-- roles: producer, worker, reader
create or replace function fenceline.retry_delay(p_policy jsonb, p_number integer) returns double precision
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_backoff jsonb := coalesce(p_policy -> 'backoff', '"quadratic"');
  v_base double precision;
  v_jitter double precision;
  v_most double precision;
  v_delay double precision;
  v_n double precision := greatest(p_number, 1);
begin
  if p_policy is not null and (jsonb_typeof(p_policy) <> 'object'
     or p_policy - array['backoff', 'base', 'jitter', 'max_delay', 'max_attempts'] <> '{}') then
    raise exception using errcode = 'FL007',
      message = format('retry policy %s is not valid: use an object with backoff, base, jitter and max_delay',
                       left(p_policy::text, 200));
  end if;
  begin
    v_base := coalesce((p_policy ->> 'base')::double precision, 2.0);
    v_jitter := coalesce((p_policy ->> 'jitter')::double precision, 0.1);
    v_most := coalesce((p_policy ->> 'max_delay')::double precision, 86400);
    v_delay := case
      when jsonb_typeof(v_backoff) = 'array' then
        (v_backoff ->> (least(v_n, jsonb_array_length(v_backoff))::integer - 1))::double precision
      when v_backoff = '"quadratic"' then v_base * v_n * v_n
      when v_backoff = '"exponential"' then v_base * power(2, least(v_n, 60) - 1)
      when v_backoff = '"fixed"' then v_base end;
  exception when data_exception then
    v_delay := null;
  end;
  -- The whole policy is judged, not only this attempt's delay: a failing job must not meet the mistake first.
  if v_delay is null or v_base not between 0 and 1e9 or v_jitter not between 0 and 1 or v_most not between 0 and 1e9
     or (jsonb_typeof(v_backoff) = 'array' and jsonb_path_exists(
           v_backoff, 'strict $[*] ? (@.type() != "number" || @ < 0 || @ > 1000000000)')) then
    raise exception using errcode = 'FL007',
      message = format('retry policy %s is not valid: backoff is "quadratic", "exponential", "fixed" or a list of '
                       'seconds; seconds are 0 to 1000000000; jitter is 0 to 1', left(p_policy::text, 200));
  end if;
  return least(v_delay * (1 + v_jitter * random()), v_most);
end;
$$;

-- Refuses settings of a lane that are out of range (FL018), with value and rule. A rate has bounds so that what is computed from
-- it, with any burst and over any time, stays a number and a moment: else nothing of the lane could be claimed.
-- roles: none
create or replace function fenceline.check_lane_settings(p_lane text, p_changes jsonb) returns void
language plpgsql immutable as $$
declare
  v_bad record;
begin
  select s.name, p_changes -> s.name as value, s.rule || case when s.clears then ', or null' else '' end as rule into v_bad
  from (values
    ('slots', 0::numeric, 2147483647::numeric, true, true, 'a whole number of 0 or more'),
    ('poll_interval_ms', 10, 3600000, true, false, 'a whole number from 10 to 3600000'),
    ('stale_timeout_seconds', 1, 2147483647, true, true, 'a whole number of 1 or more'),
    ('offline_timeout_seconds', 1, 86400, true, true, 'a whole number from 1 to 86400'),
    ('rate_per_second', 0.000001, 1e12, false, true, 'a number from 0.000001 to 1e12'),
    ('burst', 1, 2147483647, true, true, 'a whole number of 1 or more'),
    ('ageing_seconds', 1, 32767, true, true, 'a whole number from 1 to 32767'),  -- × priority must fit into a seq (aged_seq)
    ('default_priority', -32768, 32767, true, false, 'a whole number from -32768 to 32767'),
    ('enabled', null, null, false, false, 'true or false'),
    ('fair', null, null, false, false, 'true or false'),
    ('needs_approval', null, null, false, false, 'true or false')
  ) s (name, least, most, whole, clears, rule)
  where case jsonb_typeof(p_changes -> s.name)
          when 'null' then not s.clears
          when 'number' then s.least is null or (p_changes ->> s.name)::numeric not between s.least and s.most
                             or (s.whole and (p_changes ->> s.name)::numeric <> trunc((p_changes ->> s.name)::numeric))
        end
  limit 1;
  if not found and p_changes ? 'on_stale' and coalesce(p_changes ->> 'on_stale', '') not in ('retry', 'fail') then
    select 'on_stale' as name, p_changes -> 'on_stale' as value, '"retry" or "fail"' as rule into v_bad;
  end if;
  if v_bad.name is not null then
    raise exception using errcode = 'FL018',
      message = format('%s %s of lane %L is not valid: use %s', v_bad.name, left(v_bad.value::text, 80), p_lane, v_bad.rule);
  end if;
end;
$$;

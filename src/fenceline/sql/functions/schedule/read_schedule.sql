-- Settings as a schedule's row, every value checked and defaults filled in; what is not a setting stays null.
-- Whether a cron expression makes sense is for the program that computes its ticks: only its form is checked here.
-- Raises FL002, FL031, and what an enqueue with such options raises.
-- roles: none
create or replace function fenceline.read_schedule(p_name text, p_settings jsonb) returns fenceline.schedule
language plpgsql stable as $$
declare
  v_schedule fenceline.schedule;
  v_bad text;
begin
  perform fenceline.check_name('schedule', p_name);
  v_schedule.name := p_name;
  select string_agg(k, ', ') into v_bad from jsonb_object_keys(p_settings) k
  where k <> all (array['kind', 'args', 'options', 'cron', 'every', 'timezone', 'misfire', 'misfire_limit', 'windows',
                        'paused']);
  if v_bad is not null then
    raise exception using errcode = 'FL031', message = format('schedule %L has no setting %s', p_name, v_bad);
  end if;
  if p_settings ->> 'kind' is null then
    raise exception using errcode = 'FL031', message = format('schedule %L is new and needs a kind', p_name);
  end if;
  perform fenceline.check_name('kind', p_settings ->> 'kind');
  v_schedule.kind := p_settings ->> 'kind';

  v_schedule.cron := p_settings ->> 'cron';
  if (v_schedule.cron is null) = (p_settings ->> 'every' is null) then
    raise exception using errcode = 'FL031',
      message = format('schedule %L needs either cron or every, and has %s', p_name,
                       case when v_schedule.cron is null then 'neither'
                            else format('both, cron %L and every %s', v_schedule.cron, p_settings -> 'every') end);
  end if;
  if v_schedule.cron !~ '^\s*[0-9a-zA-Z*,/#-]+(\s+[0-9a-zA-Z*,/#-]+){4}\s*$' then
    raise exception using errcode = 'FL031',
      message = format('cron %L of schedule %L is not valid', left(v_schedule.cron, 200), p_name),
      hint = 'Use five fields: minute, hour, day of the month, month, day of the week.';
  end if;
  if v_schedule.cron is null then
    v_schedule.every := fenceline.read_integer(p_settings, 'every', 1, 31622400, 'FL031');
  end if;

  v_schedule.timezone := coalesce(p_settings ->> 'timezone', 'UTC');
  if v_schedule.timezone <> 'UTC'
     and not exists (select 1 from fenceline.schedule s where s.timezone = v_schedule.timezone)  -- the next is slow
     and not exists (select 1 from pg_catalog.pg_timezone_names z where z.name = v_schedule.timezone) then
    raise exception using errcode = 'FL031',
      message = format('timezone %L of schedule %L is unknown', left(v_schedule.timezone, 200), p_name),
      hint = 'Use a name such as "Europe/Berlin".';
  end if;
  v_schedule.misfire := coalesce(p_settings ->> 'misfire', 'once');
  if v_schedule.misfire not in ('skip', 'once', 'all') then
    raise exception using errcode = 'FL031',
      message = format('misfire %L of schedule %L is unknown: use skip, once or all', left(v_schedule.misfire, 200),
                       p_name);
  end if;
  v_schedule.misfire_limit := 10;
  if p_settings ->> 'misfire_limit' is not null then
    v_schedule.misfire_limit := fenceline.read_integer(p_settings, 'misfire_limit', 1, 1000, 'FL031');
  end if;
  v_schedule.windows := coalesce(nullif(p_settings -> 'windows', 'null'), '[]');
  perform fenceline.check_windows(p_name, v_schedule.windows);
  if jsonb_typeof(coalesce(nullif(p_settings -> 'paused', 'null'), 'false')) <> 'boolean' then
    raise exception using errcode = 'FL031',
      message = format('paused %s of schedule %L is not a boolean', p_settings -> 'paused', p_name);
  end if;
  v_schedule.paused := coalesce((p_settings ->> 'paused')::boolean, false);

  v_schedule.args := coalesce(nullif(p_settings -> 'args', 'null'), '{}');
  v_schedule.options := coalesce(nullif(p_settings -> 'options', 'null'), '{}');
  if jsonb_typeof(v_schedule.args) <> 'object' or jsonb_typeof(v_schedule.options) <> 'object' then
    raise exception using errcode = 'FL031',
      message = format('args and options of schedule %L must be JSON objects', p_name);
  end if;
  select string_agg(k, ', ') into v_bad from jsonb_object_keys(v_schedule.options) k
  where k = any (array['run_at', 'run_in', 'expires_at', 'idempotency_key', 'after', 'parent', 'retry_of', 'traceparent']);
  if v_bad is not null then
    raise exception using errcode = 'FL031',
      message = format('option %s of schedule %L is about one job, not about all that a schedule makes', v_bad, p_name);
  end if;
  perform fenceline.check_outside_kind(v_schedule.kind);
  perform fenceline.read_options(v_schedule.kind, v_schedule.options);
  perform fenceline.check_identity(k.name, v_schedule.options ->> 'identity',
                                   coalesce(v_schedule.options ->> 'tenant', 'default'),
                                   v_schedule.options ->> 'actor_role', k.identities)
  from fenceline.kind k where k.name = v_schedule.kind;
  return v_schedule;
end;
$$;

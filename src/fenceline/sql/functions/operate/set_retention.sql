-- Sets how long finished jobs are kept; takes effect with the next prune. Audited.
--
-- p_seconds   null: back to what the decorator or the default says
-- p_kind      null: the default of all kinds, for every status
-- p_status    one end of the kind's jobs (succeeded, failed …); null: all four
-- Raises FL002, FL007. A kind need not have been declared yet.
-- roles: admin
create or replace function fenceline.set_retention(
  p_seconds double precision,
  p_kind text default null,
  p_status text default null,
  p_actor text default null
) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_before jsonb;
  v_after jsonb;
begin
  if p_seconds is not null and not p_seconds between 0 and 2147483647 then
    raise exception using errcode = 'FL007',
      message = format('a retention of %s seconds is out of range: use 0 to 2147483647', p_seconds);
  end if;
  if p_status is not null and p_status <> all (array['succeeded', 'succeeded_with_errors', 'failed', 'cancelled']) then
    raise exception using errcode = 'FL007', message = format(
      'status %L is not an end: use succeeded, succeeded_with_errors, failed or cancelled', p_status);
  end if;
  if p_kind is null then
    if p_seconds is null or p_status is not null then
      raise exception using errcode = 'FL007',
        message = 'the default retention is one number of seconds for every status: name a kind to set one status of it';
    end if;
    select to_jsonb(s.retention_seconds) into v_before from fenceline.setting s for update;
    update fenceline.setting set retention_seconds = round(p_seconds);
    v_after := to_jsonb(round(p_seconds));
  else
    perform fenceline.check_name('kind', p_kind);
    insert into fenceline.kind (name) values (p_kind) on conflict do nothing;
    select k.operator_retention into v_before from fenceline.kind k where k.name = p_kind for update;
    select coalesce(v_before, '{}') - array_agg(s)
           || case when p_seconds is null then '{}' else jsonb_object_agg(s, p_seconds) end
      into v_after
    from unnest(case when p_status is null then array['succeeded', 'succeeded_with_errors', 'failed', 'cancelled']
                     else array[p_status] end) s;
    v_after := nullif(v_after, '{}');
    update fenceline.kind set operator_retention = v_after where name = p_kind;
  end if;
  perform fenceline.record_event(p_actor, 'retention.change', coalesce(p_kind, 'default'), null, null, v_before, v_after);
end;
$$;

-- Raises FL043 unless somebody whose token is bound to these lanes and kinds (JSON lists; null: any) may enqueue a job of
-- this kind into this lane.
-- roles: none
create or replace function fenceline.check_binding(p_kind text, p_lane text, p_kinds jsonb, p_lanes jsonb) returns void
language plpgsql immutable as $$
begin
  if p_kinds is not null and not p_kinds ? p_kind then
    raise exception using errcode = 'FL043', message = format('this token is limited to certain kinds, and %L is not one of them', p_kind);
  end if;
  if p_lanes is not null and not p_lanes ? p_lane then
    raise exception using errcode = 'FL043',
      message = format('this token is limited to certain lanes, and %L, where the job would go, is not one of them', p_lane);
  end if;
end;
$$;

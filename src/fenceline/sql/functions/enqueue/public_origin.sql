-- Where a job comes from when a caller says it: always from outside, whatever he says, because a drain and the limits of
-- tenants hold for him. What really comes from a schedule or an attempt is made by functions of our own (insert_jobs).
-- Raises FL007 (unknown origin).
-- roles: none
create or replace function fenceline.public_origin(p_origin text) returns text
language plpgsql immutable as $$
begin
  if p_origin is null or p_origin not in ('outside', 'child', 'schedule') then
    raise exception using errcode = 'FL007',
      message = format('origin %L is unknown: use outside, child or schedule', p_origin);
  end if;
  return 'outside';
end;
$$;

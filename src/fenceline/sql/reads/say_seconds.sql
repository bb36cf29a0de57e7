-- A span of time as people say it: 3 s, 5 m 20 s, 2 h 5 m, 3 d 4 h.
-- roles: none
create or replace function fenceline.say_seconds(p_seconds double precision) returns text
language sql immutable strict parallel safe as $$
  select case
    when p_seconds < 1 then 'less than 1 s'
    when p_seconds < 60 then format('%s s', floor(p_seconds))
    when p_seconds < 3600 then format('%s m %s s', floor(p_seconds / 60), floor(p_seconds)::bigint % 60)
    when p_seconds < 86400 then format('%s h %s m', floor(p_seconds / 3600), floor(p_seconds / 60)::bigint % 60)
    else format('%s d %s h', floor(p_seconds / 86400), floor(p_seconds / 3600)::bigint % 24) end;
$$;

-- Whether a path looks into every depth (`**`). A few of them in a row visit a small body so often that no time is enough.
-- Looks at the path as PostgreSQL writes it, without names and strings, which stand in quotes there.
-- roles: none
create or replace function fenceline.is_recursive_path(p_path jsonpath) returns boolean
language sql immutable as $$
  select regexp_replace(p_path::text, '"(\\.|[^"\\])*"', '', 'g') like '%**%';
$$;

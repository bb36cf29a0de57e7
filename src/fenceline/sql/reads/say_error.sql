-- An error in one line: its type (else its code) and message. What is encrypted stays so: only its holder has the key.
-- roles: none
create or replace function fenceline.say_error(p_error jsonb) returns text
language sql immutable parallel safe as $$
  select nullif(concat_ws(': ', coalesce(p_error ->> 'type', p_error ->> 'code'),
                          case jsonb_typeof(p_error -> 'message')
                            when 'string' then left(split_part(p_error ->> 'message', E'\n', 1), 300) end), '');
$$;

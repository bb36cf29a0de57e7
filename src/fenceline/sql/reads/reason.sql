-- One reason why a job is where it is, as explain_job tells it.
--
-- p_code      a fixed word, for programs; p_text: the same for people
-- p_since, p_until   since when, and until when at the latest or earliest, where that is known
-- p_details   what the text is made of
-- p_commands  what can be typed to change it
-- roles: none
create or replace function fenceline.reason(
  p_code text,
  p_text text,
  p_since timestamptz default null,
  p_until timestamptz default null,
  p_details jsonb default '{}',
  p_commands text[] default '{}'
) returns jsonb
language sql stable as $$
  select jsonb_build_object('code', p_code, 'text', p_text, 'since', p_since, 'until', p_until,
                            'details', jsonb_strip_nulls(coalesce(p_details, '{}')), 'commands', to_jsonb(p_commands));
$$;

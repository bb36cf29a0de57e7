-- Raises FL007 unless a kind's rules about identities can be read (see check_identity).
-- roles: none
create or replace function fenceline.check_identities(p_kind text, p_rules jsonb) returns void
language plpgsql immutable as $$
begin
  if p_rules is not null and (
    jsonb_typeof(p_rules) <> 'object'
    or exists (select 1 from jsonb_object_keys(p_rules) k where k <> '*' and k !~ '^(tenant|role):[a-z0-9_.-]{1,64}$')
    or jsonb_path_exists(p_rules, 'strict $.* ? (@.type() != "array")')
    or jsonb_path_exists(p_rules, 'strict $.*[*] ? (@.type() != "string")')
  ) then
    raise exception using errcode = 'FL007', message = format(
      'identities of kind %L must be an object of lists of texts; its names are "*", "tenant:…" and "role:…"', p_kind);
  end if;
end;
$$;

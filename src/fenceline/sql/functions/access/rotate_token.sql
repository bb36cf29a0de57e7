-- Gives the bearer of a token a new one in its place: same name, role, tenant, binding and length of life. The old one is
-- good for p_overlap_seconds more, so that an answer that is lost can be asked for again; what was lost then, is revoked.
--
-- p_hash, p_new_hash   of the old and the new secret
-- Returns the new token as list_tokens shows it. Raises FL007 (overlap), FL041 (not valid any more).
-- roles: admin
create or replace function fenceline.rotate_token(p_hash bytea, p_new_hash bytea, p_overlap_seconds double precision)
returns jsonb
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_now timestamptz := fenceline.clock();
  v_old fenceline.token;
  v_new fenceline.token;
begin
  if p_overlap_seconds is null or p_overlap_seconds not between 0 and 3600 then
    raise exception using errcode = 'FL007',
      message = format('an overlap of %s seconds is out of range: use 0 to 3600', p_overlap_seconds);
  end if;
  select * into v_old from fenceline.token t
  where t.hash = p_hash and t.revoked_at is null and (t.expires_at is null or t.expires_at > v_now) for update;
  if not found then
    raise exception using errcode = 'FL041', message = 'this token is not valid any more';
  end if;
  update fenceline.token t set revoked_at = v_now
  where t.id = v_old.replaced_by and t.last_used_at is null and t.revoked_at is null;
  insert into fenceline.token (hash, name, role, tenant, created_at, created_by, expires_at, life_seconds, family, lanes,
                               kinds)
  values (p_new_hash, v_old.name, v_old.role, v_old.tenant, v_now, v_old.name,
          v_now + make_interval(secs => coalesce(v_old.life_seconds, extract(epoch from v_old.expires_at - v_old.created_at))),
          coalesce(v_old.life_seconds, extract(epoch from v_old.expires_at - v_old.created_at)),
          coalesce(v_old.family, v_old.id), v_old.lanes, v_old.kinds)
  returning * into v_new;
  update fenceline.token t
  set replaced_by = v_new.id, expires_at = least(t.expires_at, v_now + make_interval(secs => p_overlap_seconds)),
      life_seconds = v_new.life_seconds
  where t.id = v_old.id;
  perform fenceline.record_event(v_old.name, 'token.rotate', 'token ' || v_old.id, v_old.tenant, null,
    fenceline.token_json(v_old), fenceline.token_json(v_new));
  return fenceline.token_json(v_new);
end;
$$;

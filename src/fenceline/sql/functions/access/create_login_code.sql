-- Makes a code that opens one session for the bearer of a token, once, within p_seconds.
--
-- p_hash   of the code; the code itself never comes here
-- p_token  the hash of the token
-- Returns when the code expires. Raises FL041 when the token is not valid, FL023 when it has 100 codes that were not used.
-- roles: admin
create or replace function fenceline.create_login_code(p_hash bytea, p_token bytea, p_seconds double precision default 600)
returns timestamptz
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  c_most constant integer := 100;
  v_now timestamptz := fenceline.clock();
  v_expires timestamptz := v_now + make_interval(secs => least(p_seconds, 3600));
begin
  delete from fenceline.login_code c where c.expires_at <= v_now;
  if (select count(*) from fenceline.login_code c join fenceline.token t on t.id = c.token where t.hash = p_token) >= c_most then
    raise exception using errcode = 'FL023',
      message = format('this token has %s codes that nobody has used: no more are made', c_most);
  end if;
  insert into fenceline.login_code (hash, token, expires_at)
  select p_hash, t.id, v_expires from fenceline.token t
  where t.hash = p_token and t.revoked_at is null and (t.expires_at is null or t.expires_at > v_now);
  if not found then
    raise exception using errcode = 'FL041', message = 'this token is not valid any more';
  end if;
  return v_expires;
end;
$$;

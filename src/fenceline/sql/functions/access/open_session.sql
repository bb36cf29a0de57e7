-- Opens a session for a person in a browser: for the bearer of a token, for who has a code, or for somebody whom an
-- identity provider vouches for. A code is used up by it. The session ends with its token, and when its bearer has opened 100
-- more.
--
-- p_hash     of the session's secret, which never comes here
-- p_seconds  how long it lasts at most
-- p_token    the hash of a token, or
-- p_code     the hash of a code, or
-- p_actor, p_role, p_tenant   who it is
-- Returns when the session expires; null when the token or the code is not valid.
-- roles: admin
create or replace function fenceline.open_session(
  p_hash bytea,
  p_seconds double precision,
  p_token bytea default null,
  p_code bytea default null,
  p_actor text default null,
  p_role text default null,
  p_tenant text default null
) returns timestamptz
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  c_most constant integer := 100;
  v_now timestamptz := fenceline.clock();
  v_expires timestamptz := v_now + make_interval(secs => p_seconds);
  v_token fenceline.token;
  v_id integer;
begin
  delete from fenceline.session s where s.expires_at <= v_now;
  if p_actor is null then
    if p_code is not null then
      delete from fenceline.login_code c where c.hash = p_code and c.expires_at > v_now returning c.token into v_id;
    end if;
    select * into v_token from fenceline.token t
    where (t.hash = p_token or t.id = v_id) and t.revoked_at is null and (t.expires_at is null or t.expires_at > v_now);
    if not found then
      return null;
    end if;
    v_expires := least(v_expires, v_token.expires_at);
  else
    perform fenceline.find_role(p_role);
  end if;
  delete from fenceline.session s where s.hash in (
    select o.hash from fenceline.session o
    where o.token = v_token.id or (o.actor = p_actor and o.tenant = p_tenant)
    order by o.created_at desc offset c_most - 1);
  insert into fenceline.session (hash, token, actor, role, tenant, created_at, expires_at)
  values (p_hash, v_token.id, p_actor, p_role, p_tenant, v_now, v_expires);
  perform fenceline.record_event(coalesce(p_actor, v_token.name), 'session.open', 'session',
    coalesce(p_tenant, v_token.tenant), null, null,
    jsonb_build_object('role', coalesce(p_role, v_token.role), 'expires_at', v_expires));
  return v_expires;
end;
$$;

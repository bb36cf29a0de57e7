-- The job that owns an idempotency key: p_job_id if the key is new or its time is over, else the first one's.
-- Raises FL073 when the first one was another request (p_request, see request_hash).
-- roles: none
create or replace function fenceline.take_idempotency_key(p_tenant text, p_key text, p_job_id bigint,
                                                          p_now timestamptz, p_request bytea)
returns bigint
language plpgsql as $$
declare
  v_job_id bigint;
  v_request bytea;
  v_seconds integer := (select idempotency_seconds from fenceline.setting);
begin
  loop
    insert into fenceline.idempotency (tenant, key, job_id, expires_at, request)
    values (p_tenant, p_key, p_job_id, p_now + make_interval(secs => v_seconds), p_request)
    on conflict (tenant, key) do update
      set job_id = excluded.job_id, expires_at = excluded.expires_at, request = excluded.request
      where idempotency.expires_at <= p_now
    returning job_id into v_job_id;
    if not found then
      select i.job_id, i.request into v_job_id, v_request
      from fenceline.idempotency i where i.tenant = p_tenant and i.key = p_key;
      if v_request <> p_request then
        raise exception using errcode = 'FL073',
          message = format('idempotency key %L was used for another request: a repeat has the same kind, args and options',
                           left(p_key, 80)),
          hint = 'Use a new key for a new request.';
      end if;
    end if;
    exit when v_job_id is not null;  -- else it was pruned in between
  end loop;
  return v_job_id;
end;
$$;

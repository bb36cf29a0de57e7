-- Ends a block of code outside handlers: its lock, or its wait for one, and its lease. Harmless to repeat, and after the
-- lease was lost: whoever has the lock since then keeps it.
-- Returns `held`, whether the block's lease had not been ended before, and `next`, the block that is next in line.
-- roles: producer, worker
create or replace function fenceline.release_outside_lock(p_owner uuid) returns jsonb
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_id bigint;
begin
  delete from fenceline.lock_lease h where h.owner = p_owner returning h.id into v_id;
  return jsonb_build_object('held', found, 'next', fenceline.release_lock(v_id, p_owner));
end;
$$;

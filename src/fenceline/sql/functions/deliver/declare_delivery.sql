-- Has a backend deliver the lanes of a program that says so, where nobody has said anything else; an operator's word, 'postgres'
-- too, is left alone.
-- roles: worker
create or replace function fenceline.declare_delivery(p_lanes text[], p_delivery text) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform fenceline.check_name('delivery', p_delivery);
  update fenceline.lane l set delivery = p_delivery, updated_at = fenceline.clock()
  where l.name = any(p_lanes) and l.delivery is null;
end;
$$;

-- The form in which people see an id: 13 symbols of Crockford's Base32 and two check symbols (id modulo 1021), in groups.
-- p_id: 0 or more; a negative id is FL017. Returns text like 01HQ-3KBR-T5GN-8WX. Reads no table.
-- The twin of fenceline.model.public_id.format_id.
-- roles: producer, worker, reader
create or replace function fenceline.public_id(p_id bigint) returns text
language plpgsql immutable strict parallel safe as $$
begin
  if p_id < 0 then
    raise exception using errcode = 'FL017', message = format('%s is not an id: ids are 0 or more', p_id);
  end if;
  -- One expression, no loop: called for every row of a list. Measured 2 µs, a loop 4 µs. A plain SQL function is as
  -- fast only where the planner can inline it, and then the plan repeats this text.
  return substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', (p_id >> 60)::integer + 1, 1)
    || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', (p_id >> 55 & 31)::integer + 1, 1)
    || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', (p_id >> 50 & 31)::integer + 1, 1)
    || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', (p_id >> 45 & 31)::integer + 1, 1)
    || '-'
    || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', (p_id >> 40 & 31)::integer + 1, 1)
    || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', (p_id >> 35 & 31)::integer + 1, 1)
    || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', (p_id >> 30 & 31)::integer + 1, 1)
    || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', (p_id >> 25 & 31)::integer + 1, 1)
    || '-'
    || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', (p_id >> 20 & 31)::integer + 1, 1)
    || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', (p_id >> 15 & 31)::integer + 1, 1)
    || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', (p_id >> 10 & 31)::integer + 1, 1)
    || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', (p_id >> 5 & 31)::integer + 1, 1)
    || '-'
    || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', (p_id & 31)::integer + 1, 1)
    || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', (p_id % 1021 >> 5)::integer + 1, 1)
    || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', (p_id % 1021 & 31)::integer + 1, 1);
end;
$$;

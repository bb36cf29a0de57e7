-- The id behind its public form, as people type it: in any case, hyphens anywhere, I or L for 1 and O for 0.
-- p_id: the text; ids of version 0.1, with one check symbol, are read too. Returns the id; FL017 names the text and the rule it breaks. Reads no table.
-- The twin of fenceline.model.public_id.parse_id.
-- roles: producer, worker, reader
create or replace function fenceline.parse_public_id(p_id text) returns bigint
language plpgsql immutable strict parallel safe as $$
declare
  -- translate, not upper(): only ASCII letters fold, whatever the collation.
  v_symbols text := translate(p_id, 'abcdefghijklmnopqrstuvwxyzILO-', 'ABCDEFGH1JK1MN0PQRSTUVWXYZ110');
  v_symbol text;
  v_digit integer;
  v_check text;
  v_value bigint := 0;
  v_rule text;
begin
  if length(v_symbols) not in (14, 15) then
    v_rule := format('an id has 15 symbols without the hyphens, this has %s', length(v_symbols));
  else
    for v_place in 1 .. 13 loop
      v_symbol := substr(v_symbols, v_place, 1);
      v_digit := strpos('0123456789ABCDEFGHJKMNPQRSTVWXYZ', v_symbol) - 1;
      if v_digit < 0 then
        v_rule := format('''%s'' is not a symbol of an id', v_symbol);
        exit;
      elsif v_place = 1 and v_digit > 7 then
        v_rule := 'it is larger than any id';  -- 13 symbols hold 65 bits, an id has 63
        exit;
      end if;
      v_value := v_value << 5 | v_digit;
    end loop;
    if v_rule is null then
      v_check := case when length(v_symbols) = 15 then right(fenceline.public_id(v_value), 2)
                      else substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ*~$=U', (v_value % 37)::integer + 1, 1) end;
      if substr(v_symbols, 14) <> v_check then
        v_rule := 'the check symbols do not fit; one of the symbols is mistyped';
      end if;
    end if;
  end if;
  if v_rule is not null then
    raise exception using errcode = 'FL017', message = format('''%s'' is not a job id: %s', left(p_id, 40), v_rule);
  end if;
  return v_value;
end;
$$;

-- compatible_from: 1
--
-- Functions of 0.1.0 that insert a whole row variable (`insert into t select v.*`) fail when the table gains a column
-- between the moment they fill the variable and the insert, and write null into a column that has a default. From here
-- on they name the columns that there are now, so that the migrations that follow may add some while calls are under way.
do $$
declare
  v_function record;
begin
  for v_function in
    select pg_get_functiondef(p.oid) as text, m.found[1] as statement, m.found[2] as name, m.found[3] as variable
    from pg_proc p
    cross join lateral regexp_match(p.prosrc, '(insert into (fenceline\.\w+) select ([pv]_\w+)\.\*)') as m(found)
    where p.pronamespace = 'fenceline'::regnamespace and m.found is not null
  loop
    execute (
      select replace(v_function.text, v_function.statement,
                     format('insert into %s (%s) select %s', v_function.name,
                            string_agg(format('%I', a.attname), ', ' order by a.attnum),
                            string_agg(format('%s.%I', v_function.variable, a.attname), ', ' order by a.attnum)))
      from pg_attribute a
      where a.attrelid = v_function.name::regclass and a.attnum > 0 and not a.attisdropped);
  end loop;
end $$;

-- Ends an attempt that was running in a process when that died; the caller has just deleted its `running` row.
--
-- p_deaths    how many processes have died with the job alone in them, this one included
-- p_suspect   whether it must run alone from now on; not needed where it has a process to itself anyway
-- The rule, in one place: the third such death is the end, with code `quarantined`; before that the attempt is refunded.
-- Lock order: as settle.
-- roles: none
create or replace function fenceline.end_crashed(
  p_run fenceline.running,
  p_deaths integer,
  p_error jsonb,
  p_suspect boolean default true,
  p_metadata jsonb default null
) returns void
language plpgsql as $$
declare
  v_error jsonb := jsonb_build_object('code', 'crashed', 'message', 'the worker process died') || coalesce(p_error, '{}');
  v_outcome text;
begin
  v_outcome := case when p_deaths >= 3
    then fenceline.end_attempt(p_run, 'quarantined', p_metadata => p_metadata, p_error => v_error || jsonb_build_object(
           'code', 'quarantined', 'message', 'the job killed its process 3 times while it ran alone'))
    else fenceline.end_attempt(p_run, 'crashed', p_metadata => p_metadata, p_error => v_error,
           p_deaths => case when p_suspect then p_deaths::smallint end) end;
  perform fenceline.settle_if_final(p_run, v_outcome);
end;
$$;

"""A clock that stands still until a test moves it, in one test database.

Every time that the functions use comes from `fenceline.clock()`, but for the time in new ids, which is read where
they are made. Both read the table here once `install_clock` has run, so that steps of a test happen at exact,
repeatable moments: "30 seconds later" is neither a sleep nor a guess.
"""

from fenceline.testing.clock import RAN_MEANWHILE, ids_by_clock

__all__ = ["MOVE_CLOCK", "RAN_MEANWHILE", "RESET_CLOCK", "START", "clock_sql"]

START = "2030-01-01T12:00:00+00:00"  # any whole second

_TABLE = f"""
create table public.test_clock (now timestamptz not null);
insert into public.test_clock values ('{START}');
create or replace function fenceline.clock() returns timestamptz language sql volatile parallel safe as $$
  select now from public.test_clock;
$$;
"""

MOVE_CLOCK = "update public.test_clock set now = now + make_interval(secs => %s)"
RESET_CLOCK = f"update public.test_clock set now = '{START}'"


def clock_sql() -> str:
    """SQL that replaces the clock of a test database; run it once, as the owner of the schema."""
    return "\n".join([_TABLE, *ids_by_clock()])

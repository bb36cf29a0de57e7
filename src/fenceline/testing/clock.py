"""A clock that tests can move, in the databases that the test kit makes.

The SQL functions take the time from `fenceline.clock()`, except for the time in new ids, which is read where they are
made. In a test database both are replaced. In a schema that `migrate` installs, nobody can move the clock.
"""

from datetime import timedelta

import asyncpg

from fenceline.database.schema_files import read_schema_files
from fenceline.errors import FencelineError

_MOVABLE_CLOCK = """
create schema fenceline_test;
create table fenceline_test.clock (ahead interval not null);
insert into fenceline_test.clock values ('0');
create or replace function fenceline.clock() returns timestamptz language sql volatile parallel safe as $$
  select clock_timestamp() + (select ahead from fenceline_test.clock);
$$;
"""
_ADVANCE = "update fenceline_test.clock set ahead = ahead + $1::interval"
#: Without this a big move would look like a clock that was set, not like time that has passed (function clock_step).
RAN_MEANWHILE = """
update fenceline.maintenance set ran_at = greatest(ran_at, fenceline.clock() - interval '1 second') where task = 'live'
"""


class NoTestClock(FencelineError):
    """The database was not made by the test kit, so its clock cannot be moved."""


def movable_clock_sql() -> str:
    """SQL that makes the clock of a test database movable. Run it once, as the owner of the schema."""
    return "\n".join([_MOVABLE_CLOCK, *ids_by_clock()])


#: The clock itself, and a function that waits until a moment has really passed.
REAL_TIME = {"clock", "await_token"}


def ids_by_clock() -> list[str]:
    """The functions that read the system's time, changed to read `fenceline.clock()`."""
    return [
        file.text.replace("clock_timestamp()", "fenceline.clock()")
        for file in read_schema_files().code
        if file.name not in REAL_TIME and "clock_timestamp()" in file.text
    ]


async def advance_clock(connection: asyncpg.Connection, by: timedelta) -> None:
    """Let time pass, as if all workers had slept. Raises NoTestClock, ValueError."""
    if by < timedelta(0):
        raise ValueError(f"the clock cannot go back by {-by}: advance() takes what lies ahead")
    try:
        await connection.execute(_ADVANCE, by)
    except asyncpg.UndefinedTableError as error:
        raise NoTestClock(
            "the clock of this database cannot be moved: use the fixture `fenceline_app`, whose databases are made for "
            "tests"
        ) from error
    await connection.execute(RAN_MEANWHILE)

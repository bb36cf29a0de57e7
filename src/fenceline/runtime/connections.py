"""Runs a call on a connection that the caller brought, inside the caller's transaction.

Drivers are recognised by the names of their classes, so none of them has to be installed or imported for the others to
work.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal, TypeVar

from fenceline.database.call import Call
from fenceline.database.decoding import Row
from fenceline.database.failures import schema_problem
from fenceline.errors.sqlstates import refusal

T = TypeVar("T")
Family = Literal["asyncpg", "psycopg", "async psycopg", "sqlalchemy", "async sqlalchemy", "django"]

_PARAMETER = re.compile(r"\$(\d+)")
_FAMILIES: dict[tuple[str, str], Family] = {
    ("asyncpg", "Connection"): "asyncpg",
    ("asyncpg", "PoolConnectionProxy"): "asyncpg",
    ("psycopg", "Connection"): "psycopg",
    ("psycopg", "AsyncConnection"): "async psycopg",
    ("sqlalchemy", "Connection"): "sqlalchemy",
    ("sqlalchemy", "Session"): "sqlalchemy",
    ("sqlalchemy", "scoped_session"): "sqlalchemy",
    ("sqlalchemy", "AsyncConnection"): "async sqlalchemy",
    ("sqlalchemy", "AsyncSession"): "async sqlalchemy",
    ("sqlalchemy", "async_scoped_session"): "async sqlalchemy",
    ("django", "ConnectionProxy"): "django",  # django.db.connection
    ("django", "DatabaseWrapper"): "django",  # django.db.connections["…"]
}
_BLOCKING = ("psycopg", "sqlalchemy", "django")


def family_of(connection: Any) -> Family:
    """Which driver a connection belongs to. Raises TypeError."""
    for cls in type(connection).__mro__:
        family = _FAMILIES.get((cls.__module__.partition(".")[0], cls.__name__))
        if family is not None and (family != "django" or connection.vendor == "postgresql"):
            return family
    raise TypeError(
        f"{_name_of(connection)} cannot be used as connection: pass an "
        "asyncpg or psycopg connection, a SQLAlchemy Connection or Session, or a PostgreSQL connection of Django"
    )


def blocking_family_of(connection: Any) -> Family:
    """As `family_of`, for blocking code. Raises TypeError for an async connection."""
    family = family_of(connection)
    if family not in _BLOCKING:
        raise TypeError(
            f"{_name_of(connection)} is async and cannot be used from blocking code: use the async verbs, or a "
            "blocking connection"
        )
    return family


def async_family_of(connection: Any) -> Family:
    """As `family_of`, for async code. Raises TypeError for a blocking connection, which would stop the event loop."""
    family = family_of(connection)
    if family in _BLOCKING:
        raise TypeError(
            f"{_name_of(connection)} is blocking and cannot be used from async code: use the verbs under `.sync`, or "
            "an async connection"
        )
    return family


def _name_of(connection: Any) -> str:
    return f"{type(connection).__module__}.{type(connection).__qualname__}"


def _unwrapped(connection: Any) -> Any:
    """The connection behind the one that `ctx.transaction()` hands out."""
    return getattr(connection, "__wrapped__", connection)


def _start(connection: Any, call: Call[Any], family: Family) -> Any:
    """Start the statement; the answer (rows, cursor or result) is awaitable for the async families."""
    match family:
        case "asyncpg":
            return connection.fetch(call.sql, *call.parameters)
        # Tuples, whatever row factory the connection has: decoders read by position.
        case "psycopg":
            from psycopg import RawCursor, rows

            return RawCursor(connection, row_factory=rows.tuple_row).execute(call.sql, call.parameters)
        case "async psycopg":
            from psycopg import AsyncRawCursor, rows

            return AsyncRawCursor(connection, row_factory=rows.tuple_row).execute(call.sql, call.parameters)
        case "sqlalchemy" | "async sqlalchemy":
            from sqlalchemy import text

            statement = text(_PARAMETER.sub(r":p\1", call.sql))
            return connection.execute(statement, _named(call))
        case "django":
            cursor = connection.cursor()
            cursor.execute(_PARAMETER.sub(r"%(p\1)s", call.sql.replace("%", "%%")), _named(call))
            return cursor


def _named(call: Call[Any]) -> dict[str, Any]:
    return {f"p{n}": value for n, value in enumerate(call.parameters, start=1)}


@contextmanager
def _translated_errors() -> Iterator[None]:
    """Turn a driver's error into ours, where we know what it means."""
    try:
        yield
    except Exception as error:
        refused = refusal(error) or schema_problem(error)
        if refused is None:
            raise
        raise refused from error


def run_blocking(connection: Any, call: Call[T]) -> T:
    """Run a call on a blocking connection."""
    connection = _unwrapped(connection)
    family = blocking_family_of(connection)
    with _translated_errors():
        return call.decode(_start(connection, call, family).fetchall())


async def run(connection: Any, call: Call[T]) -> T:
    """Run a call on an async connection."""
    connection = _unwrapped(connection)
    family = async_family_of(connection)
    with _translated_errors():
        answer = await _start(connection, call, family)
        rows: Sequence[Row]
        match family:
            case "asyncpg":
                rows = answer
            case "async psycopg":
                rows = await answer.fetchall()
            case _:
                rows = answer.fetchall()
        return call.decode(rows)

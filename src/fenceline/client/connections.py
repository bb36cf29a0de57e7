"""Runs a call on a connection that the caller brought, inside the caller's transaction.

Drivers are told by the module of their classes, so that none of them has to be installed, or imported, for the
others to work.
"""

import re
from collections.abc import Awaitable, Sequence
from typing import Any, TypeVar, cast

from fenceline.database.calls import Call, Row
from fenceline.errors import refusal

T = TypeVar("T")

_PARAMETER = re.compile(r"\$(\d+)")


def _family(connection: Any) -> str:
    for cls in type(connection).__mro__:
        package = cls.__module__.partition(".")[0]
        if package in ("asyncpg", "psycopg", "sqlalchemy"):
            is_async = package == "asyncpg" or cls.__name__.startswith(("Async", "async"))
            return f"{package}-async" if is_async else package
    raise TypeError(
        f"a {type(connection).__module__}.{type(connection).__qualname__} cannot be used as connection: pass an "
        "asyncpg or psycopg connection, or a SQLAlchemy Connection or Session"
    )


def _start(connection: Any, call: Call[Any], family: str) -> Any:
    """Start the statement; the answer (rows, cursor or result) is awaitable for the async families."""
    match family:
        case "asyncpg-async":
            return connection.fetch(call.sql, *call.parameters)
        case "psycopg":
            from psycopg import RawCursor  # noqa: PLC0415 - only where the caller uses psycopg

            return RawCursor(connection).execute(call.sql, call.parameters)
        case "psycopg-async":
            from psycopg import AsyncRawCursor  # noqa: PLC0415 - as above

            return AsyncRawCursor(connection).execute(call.sql, call.parameters)
        case _:
            from sqlalchemy import text  # noqa: PLC0415 - only where the caller uses SQLAlchemy

            statement = text(_PARAMETER.sub(r":p\1", call.sql))
            return connection.execute(statement, {f"p{n}": value for n, value in enumerate(call.parameters, start=1)})


def run_blocking(connection: Any, call: Call[T]) -> T:
    """Run a call on a blocking connection."""
    family = _family(connection)
    if family.endswith("-async"):
        raise TypeError(
            f"a {type(connection).__qualname__} is async and cannot be used from blocking code: "
            "use the async verbs, or a blocking connection"
        )
    try:
        return call.decode(_start(connection, call, family).fetchall())
    except Exception as error:
        raise refusal(error) or error from error


async def run(connection: Any, call: Call[T]) -> T:
    """Run a call on any connection; a blocking one blocks the event loop for that long."""
    family = _family(connection)
    if not family.endswith("-async"):
        return run_blocking(connection, call)
    try:
        answer = await cast("Awaitable[Any]", _start(connection, call, family))
        rows: Sequence[Row]
        if family == "asyncpg-async":
            rows = answer
        elif family == "psycopg-async":
            rows = await answer.fetchall()
        else:
            rows = answer.fetchall()
        return call.decode(rows)
    except Exception as error:
        raise refusal(error) or error from error

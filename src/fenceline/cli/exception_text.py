"""What a person reads when a command cannot do its work: one line that says what to do."""

import socket
import sys

from fenceline.errors import DatabaseUnavailable, FencelineError, InvalidId, UnknownLane
from fenceline.model.visible import visible

_CHECK_DSN = "check --dsn (or FENCELINE_DSN), and that PostgreSQL is running there"


def one_line(error: Exception) -> str | None:
    """The line, or None for what is a mistake of this program and deserves its traceback."""
    line = _line(error)
    return None if line is None else visible(" ".join(line.split()))


def _line(error: Exception) -> str | None:
    match error:
        case DatabaseUnavailable():
            return f"{error}; {_CHECK_DSN}"
        case UnknownLane():
            return f"{error}; `fenceline lanes list` shows the lanes there are"
        case FencelineError() | InvalidId():
            return str(error)
        case BrokenPipeError():
            return None  # click's own: the reader of our output has gone
        case ConnectionError() | TimeoutError() | socket.gaierror():
            return f"no connection: {str(error) or 'it took too long'}; {_CHECK_DSN}"
    return _driver_line(error)


def _driver_line(error: Exception) -> str | None:
    if "asyncpg" not in sys.modules:
        return None
    import asyncpg

    match error:
        case asyncpg.InsufficientPrivilegeError():
            return (
                f"{error}: this database role may not do that; connect as one that an administrator has granted "
                "fenceline_admin (or fenceline_producer, fenceline_reader for less)"
            )
        case (
            asyncpg.InvalidAuthorizationSpecificationError()
            | asyncpg.InvalidCatalogNameError()
            | asyncpg.CannotConnectNowError()
            | asyncpg.TooManyConnectionsError()
            | asyncpg.exceptions.ClientConfigurationError()
        ):
            return f"no connection: {error}; {_CHECK_DSN}"
        case asyncpg.UndefinedFunctionError():
            return f"the schema has not all that this program needs ({error}): run `fenceline migrate`"
        case asyncpg.PostgresError():
            return f"the database refused: {error}"
    return None

"""What a person reads when a command cannot do its work: one line that says what to do."""

import socket
import sys

from fenceline.database.failures import is_lost, is_refused_login
from fenceline.errors import DatabaseUnavailable, FencelineError, InvalidId, UnknownLane
from fenceline.model.visible import visible

_CHECK_DSN = "check --dsn (or FENCELINE_DSN), and that PostgreSQL is running there"


def one_line(error: Exception) -> str | None:
    """The line, or None for a mistake of this program, which deserves a traceback."""
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
            return None  # click handles it: whoever read our output is gone
        case (
            ConnectionError()
            | TimeoutError()
            | socket.gaierror()
            # About the server's socket: an error about a file has its name.
            | FileNotFoundError(filename=None)
            | PermissionError(filename=None)
        ):
            return f"no connection: {str(error) or 'it took too long'}; {_CHECK_DSN}"
    return _driver_line(error)


def _driver_line(error: Exception) -> str | None:
    if "asyncpg" not in sys.modules:
        return None
    import asyncpg

    is_full = isinstance(error, asyncpg.CannotConnectNowError | asyncpg.TooManyConnectionsError)
    # Of a connection that is lost between two statements, the driver has no SQLSTATE.
    has_gone = isinstance(error, asyncpg.InterfaceError | asyncpg.InternalClientError) and is_lost(error)
    if is_refused_login(error) or is_full or has_gone:
        return f"no connection: {error}; {_CHECK_DSN}"
    match error:
        case asyncpg.InsufficientPrivilegeError():
            return (
                f"{error}: this database role may not do that; connect as one that an administrator has granted "
                "fenceline_admin (or fenceline_producer, fenceline_reader for less)"
            )
        case asyncpg.UndefinedFunctionError():
            return f"the schema has not all that this program needs ({error}): run `fenceline migrate`"
        case asyncpg.PostgresError():
            return f"the database refused: {error}"
    return None

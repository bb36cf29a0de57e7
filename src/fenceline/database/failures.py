"""What a driver's error means for the sender of the statement. The one place where that is decided, for every loop.

lost     the connection is gone, however the driver puts it; the statement may or may not have been carried out
passing  the server refused or undid the statement for a reason that goes away by itself: nothing has happened, so any
         statement can be sent again
"""

from fenceline.errors import FencelineError, SchemaMissing, SchemaOutdated

#: Endings of a session: shut down by an operator or a crash, not up yet, idle for too long.
_LOST_CLASSES = ("08", "57P")
_LOST_STATES = ("25P03", "25P04")
#: Deadlocks and other conflicts; out of disk, memory or connections; trouble of the machine below the server.
_PASSING_CLASSES = ("40", "53", "58")
#: Read-only during a failover; a lock that could not be taken in time; ended by a timeout or by an operator.
_PASSING_STATES = ("25006", "55P03", "57014")
#: No lock in time, or no time left for the whole statement.
_BUSY_STATES = ("55P03", "57014")
_READ_ONLY = "25006"
_NO_SCHEMA = "3F000"
#: Internal errors (XX000) of a call under which the catalogue changed.
_CATALOGUE_CHANGED = (
    "cache lookup failed for function",
    "exceeds number of columns",
    "tuple concurrently updated",
)


def state_of(error: BaseException) -> str | None:
    """The SQLSTATE of a driver's error, if it has one."""
    state = getattr(error, "sqlstate", None)
    return state if isinstance(state, str) else None


def is_lost(error: BaseException) -> bool:
    """Whether the connection is gone, or could not be made because nobody answers."""
    import asyncpg

    if isinstance(error, FencelineError):
        return False
    state = state_of(error)
    if state is not None:
        return state.startswith(_LOST_CLASSES) or state in _LOST_STATES
    if isinstance(error, asyncpg.InterfaceError):
        # "connection is closed" and the like; those that are a ValueError too are about a DSN or a parameter.
        return not isinstance(error, ValueError)
    if isinstance(error, RuntimeError):
        return "handler is closed" in str(error)  # uvloop, of a socket that was closed below it
    if isinstance(error, asyncpg.InternalClientError):
        # Raised when the server says goodbye while the driver is about to send; or for a type that it cannot decode.
        return "decoder" not in str(error)
    return isinstance(error, OSError | TimeoutError | EOFError)


def is_unsent(error: BaseException) -> bool:
    """Whether a lost connection is known to have been lost before the statement was sent on it."""
    import asyncpg

    return isinstance(error, asyncpg.InternalClientError) and "cannot switch to state" in str(error)


def is_passing(error: BaseException) -> bool:
    """Whether the server refused for a reason that goes away by itself; nothing has happened."""
    state = state_of(error)
    return state is not None and (
        state.startswith(_PASSING_CLASSES) or state in _PASSING_STATES or is_code_missing(error)
    )


def is_busy(error: BaseException) -> bool:
    """Whether the statement gave up because others hold what it needs; it is undone."""
    return state_of(error) in _BUSY_STATES


def is_code_missing(error: BaseException) -> bool:
    """Whether a function of the state machine was not there, or was written for a table as it was a moment ago: a
    migration may be replacing it right now.
    """
    state, text = state_of(error), str(error)
    return (state == "42883" and "fenceline." in text) or (
        state == "XX000" and any(words in text for words in _CATALOGUE_CHANGED)
    )


def schema_problem(error: BaseException) -> SchemaMissing | SchemaOutdated | None:
    """What a driver's error says of the schema, if anything. Drivers may be wrapped, as SQLAlchemy and Django do."""
    seen: BaseException | None = error
    while seen is not None:
        if state_of(seen) == _NO_SCHEMA and '"fenceline"' in str(seen):
            return SchemaMissing("this database has no Fenceline schema: run `fenceline migrate`")
        if is_code_missing(seen):
            return SchemaOutdated(
                f"the schema lacks something that this program needs ({seen}): run `fenceline migrate`"
            )
        seen = getattr(seen, "orig", None) or seen.__cause__
    return None


def needs_new_connection(error: BaseException) -> bool:
    """Whether the connection is of no more use. A server that has become read-only is no longer the primary, and the
    next connection may find the one that is.
    """
    state = state_of(error)
    return state is None or state == _READ_ONLY or is_lost(error)


def is_refused_login(error: BaseException) -> bool:
    """Whether a connection cannot be made for a reason that a person must see to."""
    import asyncpg

    return isinstance(
        error,
        asyncpg.InvalidAuthorizationSpecificationError
        | asyncpg.InvalidCatalogNameError
        | asyncpg.exceptions.ClientConfigurationError,
    )

"""What drivers say when something is wrong, and what it means."""

import asyncio
import ssl

import asyncpg
import pytest

from fenceline.database import failures
from fenceline.errors import SchemaMissing

LOST = [
    asyncpg.InterfaceError("cannot call Connection.fetch(): connection is closed"),
    asyncpg.InterfaceError("cannot perform operation: another operation is in progress"),
    asyncpg.InternalClientError("cannot switch to state 12; another operation (2) is in progress"),
    asyncpg.ConnectionDoesNotExistError("connection was closed in the middle of operation"),
    asyncpg.AdminShutdownError("terminating connection due to administrator command"),
    asyncpg.CrashShutdownError("terminating connection because of crash of another server process"),
    asyncpg.CannotConnectNowError("the database system is starting up"),
    asyncpg.IdleInTransactionSessionTimeoutError("terminating connection due to idle-in-transaction timeout"),
    ConnectionResetError(104, "Connection reset by peer"),
    ssl.SSLEOFError(8, "EOF occurred in violation of protocol"),
    asyncio.IncompleteReadError(b"", 5),
    TimeoutError(),
    RuntimeError("unable to perform operation on <TCPTransport closed=True>; the handler is closed"),
]
PASSING = [
    asyncpg.ReadOnlySQLTransactionError("cannot execute INSERT in a read-only transaction"),
    asyncpg.DeadlockDetectedError("deadlock detected"),
    asyncpg.SerializationError("could not serialize access"),
    asyncpg.DiskFullError("could not extend file"),
    asyncpg.OutOfMemoryError("out of memory"),
    asyncpg.TooManyConnectionsError("sorry, too many clients already"),
    asyncpg.LockNotAvailableError("canceling statement due to lock timeout"),
    asyncpg.PostgresIOError("could not read block"),
    asyncpg.UndefinedFunctionError("function fenceline.claim_jobs(integer) does not exist"),
    asyncpg.InternalServerError("cache lookup failed for function 16999"),
    asyncpg.InternalServerError("attribute number 32 exceeds number of columns 31"),
    asyncpg.InternalServerError("tuple concurrently updated"),
]
NEITHER = [
    asyncpg.UndefinedTableError('relation "invoice" does not exist'),
    asyncpg.UndefinedFunctionError("function rowid() does not exist"),
    asyncpg.UniqueViolationError("duplicate key"),
    asyncpg.InternalServerError("unexpected chunk number"),
    asyncpg.DataError("invalid input for query argument $1"),
    asyncpg.InternalClientError("no decoder for composite type element in position 0 of type OID 1016"),
    SchemaMissing("run `fenceline migrate`"),
    RuntimeError("a mistake of ours"),
    ValueError("a mistake of ours"),
]


@pytest.mark.parametrize("error", LOST, ids=lambda error: f"{type(error).__name__}-{error}"[:50])
def test_a_connection_that_is_gone(error: Exception) -> None:
    assert failures.is_lost(error)
    assert failures.needs_new_connection(error)
    assert not failures.is_passing(error)


@pytest.mark.parametrize("error", PASSING, ids=lambda error: type(error).__name__)
def test_a_refusal_that_goes_away(error: Exception) -> None:
    assert failures.is_passing(error)
    assert not failures.is_lost(error)


@pytest.mark.parametrize("error", NEITHER, ids=lambda error: f"{type(error).__name__}-{error}"[:50])
def test_anything_else_is_for_people(error: Exception) -> None:
    assert not failures.is_lost(error)
    assert not failures.is_passing(error)


def test_what_was_never_sent_can_be_sent_again() -> None:
    assert [failures.is_unsent(error) for error in LOST].count(True) == 1
    assert failures.is_unsent(LOST[2])


def test_a_server_that_has_become_read_only_is_left() -> None:
    assert failures.needs_new_connection(PASSING[0])
    assert not any(failures.needs_new_connection(error) for error in PASSING[1:])

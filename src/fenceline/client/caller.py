"""Where calls meet a database: one caller per event loop, with a small pool and a room for those who wait.

Database away: a call is repeated only where that is safe, which is before anything was sent, or when the call itself
is repeatable (reads; an enqueue with an idempotency key). Otherwise the caller is told that the outcome is unknown. A
call that the database undid, as the victim of a deadlock, is sent again too.
"""

import asyncio
import random
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from fenceline.client import connections
from fenceline.client.pool import Pool
from fenceline.client.waiting import WaitingRoom
from fenceline.database.calls import Call
from fenceline.database.source import Source
from fenceline.errors import ConnectionLost, DatabaseUnavailable, refusal
from fenceline.model.job import Outcome

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from fenceline.client.pool import Connection
    from fenceline.database.migrate import MigrationReport

T = TypeVar("T")

# Waits between tries, each with jitter: about six seconds in all, enough for a restart or a failover's end.
PAUSES = (0.05, 0.1, 0.2, 0.4, 0.8, 1.5, 3.0)
CONNECT_SECONDS = 10.0


def is_connection_failure(error: BaseException) -> bool:
    import asyncpg  # noqa: PLC0415 - keeps `import fenceline` quick

    if isinstance(error, asyncpg.InterfaceError):
        # "connection is closed" and the like; those that are a ValueError too are about a DSN or a parameter.
        return not isinstance(error, ValueError)
    return isinstance(
        error,
        OSError
        | TimeoutError
        | asyncpg.PostgresConnectionError
        | asyncpg.CannotConnectNowError
        | asyncpg.AdminShutdownError
        | asyncpg.CrashShutdownError
        | asyncpg.TooManyConnectionsError,
    )


def is_conflict(error: BaseException) -> bool:
    """Whether the database undid the statement because of others: nothing has happened, so it can be sent again."""
    return getattr(error, "sqlstate", None) in ("40001", "40P01")


def _is_refused_connection(error: BaseException) -> bool:
    import asyncpg  # noqa: PLC0415 - keeps `import fenceline` quick

    return isinstance(
        error,
        asyncpg.InvalidAuthorizationSpecificationError
        | asyncpg.InvalidCatalogNameError
        | asyncpg.exceptions.ClientConfigurationError,
    )


class Caller:
    def __init__(self, source: Source, pool_size: int, *, tracing: bool | None = None) -> None:
        self.tracing = tracing
        self.pauses: Sequence[float] = PAUSES
        self._source = source
        self._pool = Pool(self.connect, pool_size)
        self._transactions = Pool(self.connect, pool_size)
        self._checked = False
        self._checking = asyncio.Lock()
        self._is_pooled: bool | None = None  # not known yet
        self._room = WaitingRoom(self.call, self.connect)

    async def call(self, call: Call[T], connection: Any = None) -> T:
        """Run a call on the pool, or on the connection that the caller brought."""
        if connection is not None:
            return await connections.run(connection, call)
        for pause in (*self.pauses, None):
            sent = False
            try:
                async with self._pool.connection() as own:
                    sent = True
                    rows = await own.fetch(call.sql, *call.parameters)
                    return call.decode(rows)
            except Exception as error:
                refused = refusal(error)
                if refused is not None:
                    raise refused from error
                if not sent and _is_refused_connection(error):
                    raise DatabaseUnavailable(f"no connection can be made: {error}") from error
                conflict = is_conflict(error)
                if not conflict and not is_connection_failure(error):
                    raise
                if conflict and pause is None:
                    raise
                if sent and not conflict and not call.repeatable:
                    raise ConnectionLost(
                        f"the connection broke while a statement was under way ({error}): it may or may not have "
                        "been carried out. Look before you repeat it; an enqueue with an idempotency_key is "
                        "repeated for you"
                    ) from error
                if pause is None:
                    raise DatabaseUnavailable(
                        f"the database cannot be reached: {error}. Tried {len(self.pauses) + 1} times"
                    ) from error
                await asyncio.sleep(pause * random.uniform(0.5, 1.0))  # noqa: S311 - jitter, not a secret
        raise AssertionError("unreachable")

    def transaction_connection(self) -> "AbstractAsyncContextManager[Connection]":
        """A connection for a block of user code. Not of the pool that calls use: they may come from within the block,
        and if all connections were taken by such blocks, each would wait for another's.
        """
        return self._transactions.connection()

    async def wait(self, job_id: int, timeout: float | None) -> Outcome | None:
        """How a job ended; None when it does not exist. Raises TimeoutError."""
        return await self._room.wait(job_id, timeout)

    async def wait_all(self, job_ids: Sequence[int], timeout: float | None) -> list[Outcome | None]:
        """How jobs ended, once all have; as `wait`."""
        async with asyncio.timeout(timeout):
            return await asyncio.gather(*(self._room.wait(job_id, None) for job_id in job_ids))

    async def connect(self) -> "Connection":
        """A new connection to a database whose schema fits this program."""
        import asyncpg  # noqa: PLC0415 - keeps `import fenceline` quick

        dsn = await self._source.dsn()
        connection: Connection = await asyncpg.connect(
            dsn,
            timeout=CONNECT_SECONDS,
            server_settings={"application_name": "fenceline"},
            # A pooler may hand every transaction to another session, where a named statement is missing or another's.
            statement_cache_size=0 if self._is_pooled else 100,
        )
        try:
            if self._is_pooled is None:
                self._is_pooled = await _is_pooled(connection)
                if self._is_pooled:
                    connection.terminate()
                    return await self.connect()
            async with self._checking:
                if not self._checked:
                    await self._check(connection)
                    self._checked = True
        except BaseException:
            connection.terminate()
            raise
        return connection

    async def _check(self, connection: "Connection") -> None:
        # An embedded database belongs to this program, so it is brought up to date on first use. Elsewhere a migration
        # is a deliberate act.
        from fenceline.database.migrate import check_schema, migrate  # noqa: PLC0415 - keeps `import fenceline` quick

        if self._source.is_embedded:
            await migrate(connection)
        else:
            await check_schema(connection)

    async def migrate(self) -> "MigrationReport":
        import asyncpg  # noqa: PLC0415 - keeps `import fenceline` quick

        from fenceline.database.migrate import migrate  # noqa: PLC0415 - as above

        connection = await asyncpg.connect(await self._source.dsn())
        try:
            report = await migrate(connection)
        finally:
            await connection.close()
        self._checked = True
        return report

    async def close(self) -> None:
        await self._room.close()
        await self._pool.close()
        await self._transactions.close()


async def _is_pooled(connection: "Connection") -> bool:
    """Whether a pooler (PgBouncer and its like) stands between: it greets with a process id of its own making.

    Asked in the simple protocol, which leaves no prepared statement behind.
    """
    import asyncpg  # noqa: PLC0415 - keeps `import fenceline` quick

    try:
        await connection.execute(f"do 'begin assert pg_backend_pid() = {connection.get_server_pid()}; end'")
    except asyncpg.AssertError:
        return True
    return False


CallerOf = Callable[[], Caller]

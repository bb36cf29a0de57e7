"""The way to the database: one `Database` per event loop, with a small pool and one place to wait for jobs.

When the connection is lost, a call is repeated only if that is safe: nothing was sent yet, or the call itself is
repeatable (reads; an enqueue with an idempotency key). Otherwise the caller learns that the outcome is unknown. A call
that the database rolled back or refused for a passing reason (a deadlock, a failover, a full disk) is also repeated,
for a few seconds.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from fenceline.database import failures
from fenceline.database.call import Call, RunCall
from fenceline.database.dsn import Source
from fenceline.database.sealing import with_codec
from fenceline.errors import ConnectionLost, DatabaseBusy, DatabaseUnavailable, FencelineError
from fenceline.errors.sqlstates import refusal
from fenceline.model.job import JobOutcome
from fenceline.model.sealed import Codec
from fenceline.runtime import connections, session_settings
from fenceline.runtime.lock_block import OutsideBlock
from fenceline.runtime.lock_keeper import HeldLock, LockKeeper
from fenceline.runtime.outcome_waiter import OutcomeWaiter
from fenceline.runtime.pool import Pool
from fenceline.runtime.sender import Sender

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from fenceline.database.migrate import MigrationReport
    from fenceline.runtime.pool import Connection

T = TypeVar("T")

# Seconds between tries, with jitter: about six in all, enough for a restart or the end of a failover.
PAUSES = (0.05, 0.1, 0.2, 0.4, 0.8, 1.5, 3.0)
CONNECT_SECONDS = 10.0


class Database:
    def __init__(
        self,
        source: Source,
        pool_size: int,
        *,
        actor: str,
        tracing: bool | None = None,
        settings: session_settings.Settings | None = None,
        codec: Codec | None = None,
        patient: bool = True,
        enqueued: "Callable[[Database], Awaitable[None]] | None" = None,
    ) -> None:
        """`settings`: of every session, on top of `session_settings.EVERY`. `patient`: repeat a statement that gave up
        waiting, rather than raise DatabaseBusy. `enqueued`: awaited after an enqueue is committed.
        """
        self._enqueued = enqueued
        self.sender: Sender | None = None
        self._is_patient = patient
        self.actor = actor
        self.tracing = tracing
        self._codec = codec
        self._settings = {**session_settings.EVERY, **(settings or {})}
        self._unknown_settings: frozenset[str] = frozenset()
        self.pauses: Sequence[float] = PAUSES
        self._source = source
        self._pool = Pool(self.connect, pool_size)
        self._transactions = Pool(self.connect, pool_size)
        self._checked = False
        self._checking = asyncio.Lock()
        self._is_pooled: bool | None = None  # not known yet
        self._waiter = OutcomeWaiter(self.call, self.connect)
        self._overflow: RunCall | None = None
        self._locks = LockKeeper(self.call, actor)

    @property
    def is_pooled(self) -> bool:
        """Whether there is a pooler in between; known after the first connection."""
        return bool(self._is_pooled)

    def limit_transactions(self, most: int) -> None:
        """Allow at most so many transactions of handlers at a time; others wait."""
        self._transactions.retire()
        self._transactions = Pool(self.connect, most)

    def share(self, most: int, overflow: RunCall) -> None:
        """Use at most so many connections in all, for a worker process: transactions of handlers take turns on them, as
        do calls while one is free; otherwise calls go to `overflow`. So a call made inside a transaction never waits
        for a transaction. Waiters for jobs are woken by `on_ended`, since another connection listens already.
        """
        self._pool.retire()
        self._transactions.retire()
        self._pool = self._transactions = Pool(self.connect, most)
        self._overflow = overflow
        self._waiter = OutcomeWaiter(self.call, None)

    def on_ended(self, payload: str) -> None:
        """A notification of the channel `fenceline_ended`."""
        self._waiter.on_notify(payload)

    async def call(self, call: Call[T], connection: Any = None) -> T:
        """Run a call on the pool, or on the connection that the caller brought."""
        answer = await self._call(call, connection)
        if call.makes_jobs and connection is None and self._enqueued is not None:
            await self._enqueued(self)
        return answer

    async def _call(self, call: Call[T], connection: Any) -> T:
        if connection is None and self._overflow is not None and self._pool.is_full:
            return await self._overflow(call)
        call = with_codec(call, self._codec)
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
                self._judge(error, call, sent=sent)
                if pause is None:
                    raise self._gave_up(error) from error
                await asyncio.sleep(pause * random.uniform(0.5, 1.0))  # noqa: S311 - jitter, not a secret
        raise AssertionError("unreachable")

    def _judge(self, error: Exception, call: Call[T], *, sent: bool) -> None:
        """Return if the call may be sent again; otherwise raise what went wrong."""
        refused = refusal(error)
        if refused is not None:
            raise refused from error
        if not sent and failures.is_refused_login(error):
            raise DatabaseUnavailable(f"no connection can be made: {error}") from error
        if not self._is_patient and failures.is_busy(error):
            raise DatabaseBusy(f"the statement was given up and nothing was changed: {error}") from error
        if failures.is_passing(error):
            return
        if not failures.is_lost(error):
            raise error
        if sent and not call.repeatable and not failures.is_unsent(error):
            raise ConnectionLost(
                f"the connection broke while a statement was under way ({error}): it may or may not have been carried "
                "out. Check before you repeat it; an enqueue with an idempotency_key is repeated for you"
            ) from error

    def _gave_up(self, error: Exception) -> FencelineError:
        tried = f"Tried {len(self.pauses) + 1} times"
        problem = failures.schema_problem(error)
        if problem is not None:
            return problem
        if failures.is_passing(error):
            return DatabaseUnavailable(f"the database refuses for now: {error}. {tried}, nothing was changed")
        return DatabaseUnavailable(f"the database cannot be reached: {error}. {tried}")

    def transaction_connection(self) -> "AbstractAsyncContextManager[Connection]":
        """A connection for a block of user code. It is not from the pool that calls use: calls may be made inside the
        block, and if such blocks held all connections, each would wait for another.
        """
        return self._transactions.connection()

    async def take_transaction_place(self) -> None:
        """Reserve room for a connection that a blocking handler opens itself."""
        await self._transactions.take_place()

    async def leave_transaction_place(self) -> None:
        self._transactions.leave_place()

    async def pause(self, seconds: float) -> None:
        """Sleep."""
        await asyncio.sleep(seconds)

    async def wait(self, job_id: int, timeout: float | None) -> JobOutcome | None:
        """How a job ended; None when it does not exist. Raises TimeoutError."""
        return await self._waiter.wait(job_id, timeout)

    async def wait_all(self, job_ids: Sequence[int], timeout: float | None) -> list[JobOutcome | None]:
        """How jobs ended, once all of them have. See `wait`."""
        async with asyncio.timeout(timeout):
            return await asyncio.gather(*(self._waiter.wait(job_id, None) for job_id in job_ids))

    async def take_lock(self, block: OutsideBlock, holding: list[str]) -> HeldLock:
        """Hold a lock outside handlers until it is released: see `LockKeeper`."""
        return await self._locks.take(block, holding)

    async def release_lock(self, block: OutsideBlock) -> bool:
        """Returns whether it was still held."""
        return await self._locks.release(block)

    @property
    def where(self) -> str:
        """The database, for people: without its password."""
        return self._source.describe()

    async def connect(self, settings: session_settings.Settings | None = None) -> "Connection":
        """A new connection, after a check that the schema fits this program; `settings` on top of its own."""
        wanted = {**self._settings, **(settings or {})}
        if self._checked:
            return await self._open(wanted)
        # Timeouts must not cut off a migration of the embedded database, so the first session is set up afterwards.
        connection = await self._open({})
        try:
            if self._is_pooled is None:
                self._is_pooled = await session_settings.is_pooled(connection)
                if self._is_pooled:
                    connection.terminate()
                    return await self.connect()
            async with self._checking:
                if not self._checked:
                    await self._check(connection)
                    self._checked = True
            if not self._is_pooled:
                await session_settings.apply(connection, self._known(wanted))
        except BaseException:
            connection.terminate()
            raise
        return connection

    async def _open(self, settings: session_settings.Settings) -> "Connection":
        import asyncpg

        dsn = await self._source.dsn()
        connection: Connection = await asyncpg.connect(
            dsn,
            timeout=CONNECT_SECONDS,
            # A pooler refuses connections that ask for any other setting.
            server_settings={"application_name": "fenceline", **({} if self._is_pooled else self._known(settings))},
            # A pooler may give each transaction another session, where a prepared statement is missing or differs.
            statement_cache_size=0 if self._is_pooled else 100,
        )
        session_settings.keep_alive(connection)
        return connection

    def _known(self, settings: session_settings.Settings) -> dict[str, str]:
        return {name: value for name, value in settings.items() if name not in self._unknown_settings}

    async def _check(self, connection: "Connection") -> None:
        # An embedded database belongs to this program, so it is migrated on first use. Elsewhere that is a deliberate
        # act.
        from fenceline.database.migrate import check_schema, migrate  # noqa: PLC0415 - keeps `import fenceline` quick

        if self._is_pooled:
            await session_settings.refuse_other_isolation(connection)
        else:
            self._unknown_settings = await session_settings.refused_settings(connection)
        if self._source.is_embedded:
            await migrate(connection)
        else:
            await check_schema(connection)

    async def migrate(self) -> "MigrationReport":
        import asyncpg

        from fenceline.database.migrate import migrate  # noqa: PLC0415 - as above

        connection = await asyncpg.connect(await self._source.dsn())
        try:
            report = await migrate(connection)
        finally:
            await connection.close()
        self._checked = True
        return report

    async def close(self) -> None:
        if self.sender is not None:
            await self.sender.close()
        await self._locks.close()
        await self._waiter.close()
        await self._pool.close()
        await self._transactions.close()


GetDatabase = Callable[[], Database]

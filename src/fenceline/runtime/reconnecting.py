"""A connection that reconnects: one statement at a time, repeated until it is answered.

A half-open socket never answers, so a statement that takes longer than any of ours should means a broken connection.
Every call of a worker is safe to repeat: a claim because of its request id, a finish because an exact repeat answers
`already`. Passing refusals (a failover, a full disk) are waited out; the lease limits for how long.
"""

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from fenceline.database import failures
from fenceline.database.call import Call
from fenceline.database.sealing import with_codec
from fenceline.errors import ConnectionLost, DatabaseBusy
from fenceline.errors.sqlstates import refusal
from fenceline.model.sealed import Codec
from fenceline.runtime.outage import Outage
from fenceline.runtime.session_settings import Settings, limits

if TYPE_CHECKING:
    import asyncpg

    from fenceline.runtime.pool import Connection

T = TypeVar("T")

log = logging.getLogger("fenceline.worker")

FIRST_PAUSE_SECONDS = 0.05
#: Short, so that a server that is back is noticed soon.
MAX_PAUSE_SECONDS = 1.0
ANSWER_SECONDS = 60.0
#: How long statements may wait for locks, and run, at the server: a session whose process is frozen must not hold up
#: the fleet. A statement that was given up is sent again, apart from the rest (`Finisher`, `ClaimPolicy`).
CLAIM_LIMITS = limits(lock_seconds=1.0, statement_seconds=30.0)
FINISH_LIMITS = limits(lock_seconds=0.5, statement_seconds=30.0)
MAINTENANCE_LIMITS = limits(lock_seconds=2.0, statement_seconds=600.0)
#: A function that a migration is replacing is back soon; after so long it is missing for good.
CODE_SECONDS = 30.0


class ReconnectingConnection:
    def __init__(
        self,
        name: str,
        connect: "Callable[[Settings | None], Awaitable[Connection]]",
        *,
        settings: Settings | None = None,
        answer_seconds: float = ANSWER_SECONDS,
        codec: Codec | None = None,
        outage: Outage | None = None,
    ) -> None:
        """`settings`: of the session at the server. `outage`: shared with other connections."""
        self._outage = outage or Outage("database", log)
        self._codec = codec
        self._name = name
        self._connect = connect
        self._settings = settings
        self._answer_seconds = answer_seconds
        self._connection: Connection | None = None
        self.turn = asyncio.Lock()
        """Held for every statement on the connection."""
        self._retired = False

    async def connection(self) -> "Connection":
        """The connection, opened if need be, for a listener."""
        async with self.turn, asyncio.timeout(self._answer_seconds):
            return await self._connected()

    async def call(self, call: Call[T]) -> T:
        """The answer, however long it takes. Others get their turn between tries."""
        pause = FIRST_PAUSE_SECONDS
        while True:
            try:
                return await self.try_call(call)
            except DatabaseBusy as error:
                log.warning("%s: %s, trying again", self._name, error)
            await asyncio.sleep(pause)
            pause = min(pause * 2, MAX_PAUSE_SECONDS)

    async def try_call(self, call: Call[T]) -> T:
        """As `call`, but raises DatabaseBusy if somebody else holds what the statement needs: nothing was done."""
        call = with_codec(call, self._codec)
        pause = FIRST_PAUSE_SECONDS
        started = time.monotonic()
        may_be_done = False
        while True:
            try:
                async with self.turn:
                    rows = await self._send(call)
                self._outage.end()
                return call.decode(rows)
            except Exception as error:
                may_be_done = may_be_done or failures.is_lost(error)
                if not may_be_done and failures.is_busy(error):
                    raise DatabaseBusy(f"{type(error).__name__}: {error}") from error
                self._judge(error, call, seconds=time.monotonic() - started)
            await asyncio.sleep(pause * random.uniform(0.5, 1.0))  # noqa: S311 - jitter
            pause = min(pause * 2, MAX_PAUSE_SECONDS)

    async def _send(self, call: Call[T]) -> "list[asyncpg.Record]":
        try:
            async with asyncio.timeout(self._answer_seconds):
                connection = await self._connected()
                return await connection.fetch(call.sql, *call.parameters)
        except BaseException as error:
            if failures.needs_new_connection(error):
                self.close()
            raise

    async def _connected(self) -> "Connection":
        if self._connection is None or self._connection.is_closed():
            if self._connection is not None:
                self._outage.begin("it has closed the connection")
            if not self._retired:
                self._connection = await self._connect(self._settings)
            if self._connection is None or self._retired:
                self.close()
                raise ConnectionLost(f"the {self._name} connection is closed for good")
        return self._connection

    def _judge(self, error: Exception, call: Call[T], *, seconds: float) -> None:
        """Return if the call should be sent again; otherwise raise what went wrong."""
        refused = refusal(error)
        if refused is not None:
            raise refused from error
        what = f"{type(error).__name__}: {error}"
        if failures.is_lost(error):
            if not call.repeatable and not failures.is_unsent(error):
                raise ConnectionLost(f"the {self._name} connection broke: {what}") from error
            self._outage.begin(what)
        elif failures.is_passing(error) and not (failures.is_code_missing(error) and seconds > CODE_SECONDS):
            self._outage.begin(what)
        else:
            raise error

    def retire(self) -> None:
        """Close it for good: a handler that outlives its worker must not open a new one."""
        self._retired = True
        self.close()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.terminate()
            self._connection = None

"""The blocking side's way to the database: the async `Database` on an event loop in its own thread.

So pooling, retries and waiting are implemented once. A call on a connection that the caller brought runs right there,
in the caller's thread and transaction.
"""

import asyncio
import concurrent.futures
import os
import threading
import time
import weakref
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from fenceline.database.call import Call
from fenceline.database.sealing import with_codec
from fenceline.errors import DatabaseUnavailable
from fenceline.model.job import JobOutcome
from fenceline.model.sealed import Codec
from fenceline.runtime import connections
from fenceline.runtime.database import Database
from fenceline.runtime.lock_block import OutsideBlock
from fenceline.runtime.lock_keeper import HeldLock

T = TypeVar("T")


class SyncDatabase:
    def __init__(
        self,
        make_database: Callable[[], Database],
        *,
        actor: str,
        tracing: bool | None = None,
        codec: Codec | None = None,
    ) -> None:
        self.actor = actor
        self.tracing = tracing
        self._codec = codec
        self._make_database = make_database
        self._guard = threading.Lock()
        self._background: _Background | None = None
        self._of_parent: _Background | None = None
        self._lent: tuple[asyncio.AbstractEventLoop, Database, int] | None = None
        forget = weakref.WeakMethod(self._forget_in_forked_child)
        os.register_at_fork(after_in_child=lambda: (method := forget()) and method())

    def call(self, call: Call[T], connection: Any = None) -> T:
        if connection is not None:
            return connections.run_blocking(connection, with_codec(call, self._codec))
        return self.run(lambda database: database.call(call))

    def pause(self, seconds: float) -> None:
        time.sleep(seconds)

    def wait(self, job_id: int, timeout: float | None) -> JobOutcome | None:
        return self.run(lambda database: database.wait(job_id, timeout))

    def wait_all(self, job_ids: Sequence[int], timeout: float | None) -> list[JobOutcome | None]:
        return self.run(lambda database: database.wait_all(job_ids, timeout))

    def take_lock(self, block: OutsideBlock, holding: list[str]) -> HeldLock:
        return self.run(lambda database: database.take_lock(block, holding))

    def release_lock(self, block: OutsideBlock) -> bool:
        return self.run(lambda database: database.release_lock(block))

    def run(self, work: Callable[[Database], Awaitable[T]]) -> T:
        """Run something on the async side and wait for it."""
        future = self._start(work)
        try:
            return future.result()
        except concurrent.futures.CancelledError:
            raise DatabaseUnavailable("the client was closed while a call was under way") from None
        except BaseException:
            future.cancel()  # has an effect only if this thread was interrupted while it waited
            raise

    def lend(self, loop: asyncio.AbstractEventLoop, database: Database) -> None:
        """From now on use this `Database`, whose loop runs in this thread, rather than connections of our own."""
        self._lent = (loop, database, threading.get_ident())

    def _start(self, work: Callable[[Database], Awaitable[T]]) -> "concurrent.futures.Future[T]":
        # Not in the loop's own thread: waiting there would stop the loop.
        if self._lent is not None and self._lent[2] != threading.get_ident():
            return _start(*self._lent[:2], work)
        with self._guard:
            if self._background is None:
                self._background = _Background(self._make_database())
            return _start(self._background.loop, self._background.database, work)

    def close(self) -> None:
        self._lent = None
        with self._guard:
            background, self._background = self._background, None
        if background is not None:
            background.close()

    def _forget_in_forked_child(self) -> None:
        # The thread is gone, the lock may be held by a thread that is gone too, and the connections are the parent's:
        # they are kept, so that nothing here closes them.
        self._guard = threading.Lock()
        self._lent = None
        self._of_parent, self._background = self._background, None


class _Background:
    """A `Database` on an event loop in a thread."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, name="fenceline sync", daemon=True)
        self._thread.start()

    def close(self) -> None:
        asyncio.run_coroutine_threadsafe(self._wind_up(), self.loop).result()
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()

    async def _wind_up(self) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        if others:
            await asyncio.wait(others)
        await self.database.close()


def _start(
    loop: asyncio.AbstractEventLoop, database: Database, work: Callable[[Database], Awaitable[T]]
) -> "concurrent.futures.Future[T]":
    async def do() -> T:
        return await work(database)

    return asyncio.run_coroutine_threadsafe(do(), loop)


GetSyncDatabase = Callable[[], SyncDatabase]

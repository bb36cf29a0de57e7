"""The blocking side's way to the database: the async caller, on an event loop in a thread of its own.

One implementation of pooling, retries and waiting serves both. A call on a connection that the caller brought runs
right there, in the caller's thread and transaction.
"""

import asyncio
import concurrent.futures
import os
import threading
import weakref
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from fenceline.client import connections
from fenceline.client.caller import Caller
from fenceline.database.calls import Call
from fenceline.errors import DatabaseUnavailable
from fenceline.model.job import Outcome

T = TypeVar("T")


class SyncCaller:
    def __init__(self, make_caller: Callable[[], Caller], *, tracing: bool | None = None) -> None:
        self.tracing = tracing
        self._make_caller = make_caller
        self._guard = threading.Lock()
        self._background: _Background | None = None
        self._of_parent: _Background | None = None
        forget = weakref.WeakMethod(self._forget_in_forked_child)
        os.register_at_fork(after_in_child=lambda: (method := forget()) and method())

    def call(self, call: Call[T], connection: Any = None) -> T:
        if connection is not None:
            return connections.run_blocking(connection, call)
        return self.run(lambda caller: caller.call(call))

    def wait(self, job_id: int, timeout: float | None) -> Outcome | None:
        return self.run(lambda caller: caller.wait(job_id, timeout))

    def wait_all(self, job_ids: Sequence[int], timeout: float | None) -> list[Outcome | None]:
        return self.run(lambda caller: caller.wait_all(job_ids, timeout))

    def run(self, work: Callable[[Caller], Awaitable[T]]) -> T:
        """Run something of the async side and wait for it."""
        with self._guard:
            if self._background is None:
                self._background = _Background(self._make_caller())
            future = self._background.start(work)
        try:
            return future.result()
        except concurrent.futures.CancelledError:
            raise DatabaseUnavailable("the client was closed while a call was under way") from None
        except BaseException:
            future.cancel()  # of no effect unless this thread was interrupted while it waited
            raise

    def close(self) -> None:
        with self._guard:
            background, self._background = self._background, None
        if background is not None:
            background.close()

    def _forget_in_forked_child(self) -> None:
        # The thread is gone, the lock may be held by nobody, and the connections are the parent's: they are kept, so
        # that nothing here closes them.
        self._guard = threading.Lock()
        self._of_parent, self._background = self._background, None


class _Background:
    """A caller on an event loop in a thread."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="fenceline sync", daemon=True)
        self._thread.start()

    def start(self, work: Callable[[Caller], Awaitable[T]]) -> "concurrent.futures.Future[T]":
        async def do() -> T:
            return await work(self._caller)

        return asyncio.run_coroutine_threadsafe(do(), self._loop)

    def close(self) -> None:
        asyncio.run_coroutine_threadsafe(self._wind_up(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _wind_up(self) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        if others:
            await asyncio.wait(others)
        await self._caller.close()


SyncCallerOf = Callable[[], SyncCaller]

"""The blocking side's way to the database: the async caller, on an event loop in a thread of its own.

One implementation of pooling, retries and waiting serves both. A call on a connection that the caller brought runs
right there, in the caller's thread and transaction.
"""

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from fenceline.client import connections
from fenceline.client.caller import Caller
from fenceline.database.calls import Call
from fenceline.model.job import Outcome

T = TypeVar("T")


class SyncCaller:
    def __init__(self, make_caller: Callable[[], Caller]) -> None:
        self._make_caller = make_caller
        self._guard = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._caller: Caller | None = None
        self._pid = 0

    def call(self, call: Call[T], connection: Any = None) -> T:
        if connection is not None:
            return connections.run_blocking(connection, call)
        return self._run(lambda caller: caller.call(call))

    def wait(self, job_id: int, timeout: float | None) -> Outcome | None:
        return self._run(lambda caller: caller.wait(job_id, timeout))

    def run(self, work: Callable[[Caller], Awaitable[T]]) -> T:
        """Run something of the async side and wait for it."""
        return self._run(work)

    def close(self) -> None:
        with self._guard:
            loop, caller = self._loop, self._caller
            self._loop = self._caller = None
        if loop is not None and caller is not None and self._pid == os.getpid():
            asyncio.run_coroutine_threadsafe(caller.close(), loop).result()
            loop.call_soon_threadsafe(loop.stop)

    def _run(self, work: Callable[[Caller], Awaitable[T]]) -> T:
        loop, caller = self._started()

        async def do() -> T:
            return await work(caller)

        return asyncio.run_coroutine_threadsafe(do(), loop).result()

    def _started(self) -> tuple[asyncio.AbstractEventLoop, Caller]:
        with self._guard:
            # After a fork (gunicorn, multiprocessing) the thread is gone: start one of this process's own.
            if self._loop is None or self._caller is None or self._pid != os.getpid():
                self._pid = os.getpid()
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=self._loop.run_forever, name="fenceline sync", daemon=True).start()

                async def make() -> Caller:
                    return self._make_caller()

                coroutine: Coroutine[Any, Any, Caller] = make()
                self._caller = asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()
            return self._loop, self._caller


SyncCallerOf = Callable[[], SyncCaller]

"""Threads for blocking handlers.

Unlike those of concurrent.futures they are daemons: one that never returns does not keep the process from ending. A
place becomes free when its thread returns, not when its attempt ends.
"""

import asyncio
import contextlib
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

_Work = tuple["asyncio.Future[Any]", Callable[[], Any]]


class Threads:
    def __init__(self, on_free: Callable[[], None]) -> None:
        self._on_free = on_free
        self._work: SimpleQueue[_Work | None] = SimpleQueue()
        self._started = 0
        self._busy = 0
        self.lost = 0  # threads whose attempt has ended; whoever stops waiting for one counts it

    def start(self, function: Callable[[], Any]) -> "asyncio.Future[Any]":
        """Run a function in a thread. Cancelling the future does not stop the thread."""
        future = asyncio.get_running_loop().create_future()
        self._busy += 1
        if self._busy > self._started:
            self._started += 1
            threading.Thread(target=self._serve, name=f"fenceline-{self._started}", daemon=True).start()
        self._work.put((future, function))
        return future

    def close(self) -> None:
        for _ in range(self._started):
            self._work.put(None)

    def _serve(self) -> None:
        while (work := self._work.get()) is not None:
            future, function = work
            value: Any = None
            error: BaseException | None = None
            try:
                value = function()
            except StopIteration as stop:  # which no future can carry
                error = RuntimeError(f"the handler raised {stop!r}")
            except BaseException as raised:  # noqa: BLE001 - it belongs to whoever awaits the future
                error = raised
            with contextlib.suppress(RuntimeError):  # the loop is closed: there is nobody left to tell
                future.get_loop().call_soon_threadsafe(self._returned, future, value, error)
            del work, future, function, value, error

    def _returned(self, future: "asyncio.Future[Any]", value: Any, error: BaseException | None) -> None:
        self._busy -= 1
        if future.cancelled():
            self.lost -= 1
        elif error is not None:
            future.set_exception(error)
        else:
            future.set_result(value)
        self._on_free()

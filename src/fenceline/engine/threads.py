"""Threads for blocking handlers.

Unlike those of concurrent.futures they are daemons: one that never returns does not keep the process from ending. A
place is free when its thread has returned, not when somebody stops waiting for it.
"""

import asyncio
import contextlib
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, NamedTuple


class Threads:
    def __init__(self, on_free: Callable[[], None]) -> None:
        self._on_free = on_free
        self._work: SimpleQueue[_Item | None] = SimpleQueue()
        self._started = 0
        self._busy = 0
        self.lost = 0  # those that nobody waits for any more; counted up by whoever gave up waiting

    def start(self, function: Callable[[], Any]) -> "asyncio.Future[Any]":
        """Run a function in a thread; whoever cancels the future leaves the thread to itself."""
        loop = asyncio.get_running_loop()
        item = _Item(loop, loop.create_future(), function)
        self._busy += 1
        if self._busy > self._started:
            self._started += 1
            threading.Thread(target=self._serve, name=f"fenceline-{self._started}", daemon=True).start()
        self._work.put(item)
        return item.future

    def close(self) -> None:
        for _ in range(self._started):
            self._work.put(None)

    def _serve(self) -> None:
        while (item := self._work.get()) is not None:
            value: Any = None
            error: BaseException | None = None
            try:
                value = item.function()
            except StopIteration as stop:  # which no future can carry
                error = RuntimeError(f"the handler raised {stop!r}")
            except BaseException as raised:  # noqa: BLE001 - it belongs to whoever awaits the future
                error = raised
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody is there to be told
                item.loop.call_soon_threadsafe(self._returned, item.future, value, error)
            del item, value, error

    def _returned(self, future: "asyncio.Future[Any]", value: Any, error: BaseException | None) -> None:
        self._busy -= 1
        if future.cancelled():
            self.lost -= 1
        elif error is not None:
            future.set_exception(error)
        else:
            future.set_result(value)
        self._on_free()


class _Item(NamedTuple):
    loop: asyncio.AbstractEventLoop
    future: "asyncio.Future[Any]"
    function: Callable[[], Any]

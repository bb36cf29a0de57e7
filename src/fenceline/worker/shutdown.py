"""How a worker is told to stop: the first request lets its handlers finish, the second stops them now."""

import asyncio
import contextlib
import signal
from collections.abc import Coroutine
from typing import Any

#: How long handlers have to stop once the grace period is over; then their process is killed, or they are fenced off.
LAST_SECONDS = 1.0
#: How long the database or the server has to take note of a worker's end. If that fails, the lease runs out.
GOODBYE_SECONDS = 0.7


async def wait_for_either(task: "asyncio.Task[Any]", other: Coroutine[Any, Any, Any]) -> None:
    """Wait until one of them is done; the other coroutine is cancelled then, the task is not."""
    waiting = asyncio.create_task(other)
    try:
        await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()


class Shutdown:
    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self._hurried = asyncio.Event()

    def ask(self) -> None:
        if self.asked.is_set():
            self._hurried.set()
        self.asked.set()

    def ask_on_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.ask)

    async def until_over(self, grace_seconds: float) -> None:
        """Wait for a second request, or for the end of the grace period."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(grace_seconds):
                await self._hurried.wait()

"""How a worker is told to stop: to let its handlers finish, and when it is told again, to stop them now."""

import asyncio
import contextlib
import signal


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
        """Until it was asked for again, or the grace period is over."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(grace_seconds):
                await self._hurried.wait()

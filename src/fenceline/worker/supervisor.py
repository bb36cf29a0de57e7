"""The parent of worker processes: starts them, keeps their leases, replaces those that die, and ends in time."""

import asyncio
import contextlib
import signal
import time
from typing import TYPE_CHECKING

from fenceline.client.app import Fenceline
from fenceline.worker.keeper import Keeper
from fenceline.worker.offspring import Offspring
from fenceline.worker.settings import WorkerSettings

if TYPE_CHECKING:
    from fenceline.client.pool import Connection

#: A child that dies at once is restarted with growing pauses; one that lived longer than this, at once.
MOST_BACKOFF_SECONDS = 10.0


class Supervisor:
    def __init__(self, app: Fenceline, app_name: str, settings: WorkerSettings) -> None:
        self._app = app
        self._app_name = app_name
        self._settings = settings
        self._stopping = asyncio.Event()
        self._keeper = Keeper(self._connect, settings.lease_seconds)

    async def run(self) -> None:
        """Supervise until SIGTERM or SIGINT, and then until every child has ended."""
        await self._supervise([self._keep_child() for _ in range(self._settings.processes)])

    async def run_once(self) -> int:
        """One child that runs one job; its exit code: 0 done, 1 failed, 2 there was none."""
        exit_codes: list[int] = []

        async def one() -> None:
            exit_codes.append(await self._offspring().live(once=True))

        await self._supervise([one()])
        # A child that was killed or crashed has not done its job.
        return exit_codes[0] if exit_codes and exit_codes[0] in (0, 1, 2) else 1

    async def _supervise(self, children: "list[asyncio._CoroutineLike[None]]") -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stopping.set)
        # Before any child: the embedded database and its schema are there when they connect.
        (await self._connect()).terminate()
        keeping = asyncio.create_task(self._keeper.run())
        try:
            async with asyncio.TaskGroup() as tasks:
                for child in children:
                    tasks.create_task(child)
        finally:
            keeping.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await keeping
            self._keeper.close()
            await self._app.close()

    async def _keep_child(self) -> None:
        backoff = 0.1
        while not self._stopping.is_set():
            started = time.monotonic()
            await self._offspring().live()
            lived = time.monotonic() - started
            backoff = 0.1 if lived > MOST_BACKOFF_SECONDS else min(backoff * 2, MOST_BACKOFF_SECONDS)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(backoff):
                    await self._stopping.wait()

    def _offspring(self) -> Offspring:
        return Offspring(self._keeper, self._app_name, self._settings, self._stopping)

    async def _connect(self) -> "Connection":
        return await self._app.caller().connect()

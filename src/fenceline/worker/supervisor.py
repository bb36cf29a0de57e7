"""The parent of worker processes: starts them, keeps their leases, replaces those that die, and ends in time."""

import asyncio
import contextlib
import logging
import signal
from typing import TYPE_CHECKING

from fenceline.client.app import Fenceline
from fenceline.client.caller import is_connection_failure
from fenceline.client.scheduler import declare_schedules
from fenceline.errors import DatabaseUnavailable
from fenceline.worker.application import AppNotFound
from fenceline.worker.keeper import Keeper
from fenceline.worker.metrics import Metrics
from fenceline.worker.offspring import Offspring
from fenceline.worker.settings import WorkerSettings

if TYPE_CHECKING:
    from fenceline.client.pool import Connection

log = logging.getLogger("fenceline.worker")

#: A child that died is replaced at once; when that goes on, with growing pauses. One that could not even start has
#: something wrong that a restart will hardly cure.
FIRST_PAUSE_SECONDS = 0.05
MOST_PAUSE_SECONDS = 1.0
MOST_PAUSE_UNSTARTED_SECONDS = 10.0
#: A child that has lived for so long starts with a clean slate.
STEADY_SECONDS = 10.0


class Supervisor:
    def __init__(self, app: Fenceline, app_name: str, settings: WorkerSettings, metrics: Metrics | None = None) -> None:
        if not app.handlers:
            raise AppNotFound(f"{app_name} has no handlers: decorate at least one function with @app.job()")
        self._app = app
        self._app_name = app_name
        self._settings = settings
        self._stopping = asyncio.Event()
        self._hurrying = asyncio.Event()
        self._keeper = Keeper(self._connect, settings.lease_seconds)
        self._metrics = metrics
        self._zombies: set[asyncio.Task[int]] = set()

    async def run(self) -> None:
        """Supervise until SIGTERM or SIGINT, and then until every child has ended. A second signal skips the grace."""
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
            loop.add_signal_handler(number, self._stop)
        # Before any child: the embedded database and its schema are there when they connect, and what is due is ready
        # to be claimed, also by the only worker that comes by today.
        try:
            (await self._connect()).terminate()
            await declare_schedules(self._app)
        except BaseException as error:
            for child in children:
                child.close()
            if not is_connection_failure(error):
                raise
            raise DatabaseUnavailable(f"the database cannot be reached: {error}") from error
        await self._keeper.maintenance.run_once()
        keeping = asyncio.create_task(self._keeper.run())
        try:
            async with asyncio.TaskGroup() as tasks:
                for child in children:
                    tasks.create_task(child)
            if self._zombies:
                await asyncio.wait(self._zombies)
        finally:
            keeping.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await keeping
            self._keeper.close()
            await self._app.close()

    def _stop(self) -> None:
        if self._stopping.is_set():
            self._hurrying.set()
        self._stopping.set()

    async def _keep_child(self) -> None:
        loop = asyncio.get_running_loop()
        pause = FIRST_PAUSE_SECONDS
        while not self._stopping.is_set():
            started = loop.time()
            offspring = self._offspring()
            living = asyncio.create_task(offspring.live())
            losing = asyncio.create_task(offspring.lose())
            try:
                await asyncio.wait({living, losing}, return_when=asyncio.FIRST_COMPLETED)
                if not living.done():
                    # It may be frozen for ever: its place is filled, and its own end is seen to meanwhile.
                    self._zombies.add(living)
                    living.add_done_callback(self._zombies.discard)
                elif isinstance(living.exception(), OSError):
                    log.error("no child could be started: %s", living.exception())
                else:
                    living.result()
            finally:
                losing.cancel()
            if loop.time() - started > STEADY_SECONDS:
                pause = FIRST_PAUSE_SECONDS
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._stopping.wait()
            most = MOST_PAUSE_SECONDS if offspring.was_registered else MOST_PAUSE_UNSTARTED_SECONDS
            pause = min(pause * 2, most)

    def _offspring(self) -> Offspring:
        return Offspring(
            self._keeper,
            self._app_name,
            self._settings,
            stopping=self._stopping,
            hurrying=self._hurrying,
            metrics=self._metrics,
        )

    async def _connect(self) -> "Connection":
        return await self._app.caller().connect()

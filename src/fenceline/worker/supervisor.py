"""The parent of worker processes: starts them, keeps their leases, replaces those that die, and ends in time."""

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from fenceline.client.app import App
from fenceline.client.app_parts import app_parts
from fenceline.client.application import AppNotFound
from fenceline.client.schedule_decorator import declare_schedules
from fenceline.database import failures
from fenceline.delivery.postgres_leases import PostgresLeases
from fenceline.engine.worker_log import WorkerLog
from fenceline.errors import DatabaseUnavailable
from fenceline.model.worker_settings import BEATS_PER_LEASE, WorkerSettings
from fenceline.runtime.database import PAUSES
from fenceline.runtime.session_settings import Settings
from fenceline.worker.child_process import ChildProcess
from fenceline.worker.lease_keeper import LeaseKeeper
from fenceline.worker.shutdown import Shutdown, wait_for_either
from fenceline.worker.worker_metrics import Metrics

if TYPE_CHECKING:
    from fenceline.runtime.pool import Connection

log = logging.getLogger("fenceline.worker")

#: A child that died is replaced at once, and with growing pauses if that goes on. A restart will hardly cure one that
#: could not even start.
FIRST_PAUSE_SECONDS = 0.05
MAX_PAUSE_SECONDS = 1.0
MAX_PAUSE_UNSTARTED_SECONDS = 10.0
#: How many children, alive or dead, are remembered to know whether the app could ever be imported.
REMEMBERED = 1000
#: After a child that lived this long, the pauses start over.
STEADY_SECONDS = 10.0


class Supervisor:
    def __init__(self, app: App, app_name: str, settings: WorkerSettings, metrics: Metrics | None = None) -> None:
        if not app_parts(app).handlers:
            raise AppNotFound(f"{app_name} has no handlers: decorate at least one function with @app.job()")
        self._app = app
        self._app_name = app_name
        self._settings = settings
        self._shutdown = Shutdown()
        self._leases = PostgresLeases(self._connect, max(settings.lease_seconds / BEATS_PER_LEASE, 1.0))
        self._keeper = LeaseKeeper(self._leases, settings.lease_seconds)
        self._metrics = metrics
        self._log = WorkerLog(app_name, app_parts(app).handlers, settings)
        self._children: deque[ChildProcess] = deque(maxlen=REMEMBERED)
        self._zombies: set[asyncio.Task[int]] = set()

    async def run(self) -> None:
        """Supervise until SIGTERM or SIGINT, and then until every child has ended. A second signal skips the grace."""
        await self._supervise(self._keep_child, self._settings.processes)

    async def run_once(self) -> int:
        """One child that runs one job; its exit code: 0 done, 1 failed, 2 there was none."""
        exit_codes: list[int] = []

        async def one() -> None:
            child = self._child()
            exit_codes.append(await child.live(once=True))
            self._refuse_unloadable(child)

        await self._supervise(one, 1)
        # Any other exit code means that the child was killed or crashed.
        return exit_codes[0] if exit_codes and exit_codes[0] in (0, 1, 2) else 1

    async def _supervise(self, keep_child: Callable[[], Coroutine[Any, Any, None]], processes: int) -> None:
        self._shutdown.ask_on_signals()
        # Before any child starts: they find the embedded database and its schema, and what is due is ready to be
        # claimed, even by the only worker that comes by today.
        try:
            await self._reach_database()
            await declare_schedules(app_parts(self._app))
        except Exception as error:
            if not failures.is_lost(error) and not failures.is_passing(error):
                raise
            raise DatabaseUnavailable(f"the database cannot be reached: {error}") from error
        await self._leases.maintenance.try_once()
        keeping = asyncio.create_task(self._keeper.run())
        try:
            try:
                async with asyncio.TaskGroup() as tasks:
                    for _ in range(processes):
                        tasks.create_task(keep_child())
            except* AppNotFound as refused:
                raise refused.exceptions[0] from None
            if self._zombies:
                await asyncio.wait(self._zombies)
        finally:
            keeping.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await keeping
            await self._leases.close()
            await self._app.close()
            self._log.log_stopped()

    async def _reach_database(self) -> None:
        """Wait some seconds, for a restart of the server say; after that a person should know."""
        for pause in (*PAUSES, None):
            try:
                (await self._connect()).terminate()
            except Exception as error:
                passes = failures.is_lost(error) or failures.is_passing(error)
                if pause is None or self._shutdown.asked.is_set() or not passes:
                    raise
                await asyncio.sleep(pause)
            else:
                return

    async def _keep_child(self) -> None:
        loop = asyncio.get_running_loop()
        pause = FIRST_PAUSE_SECONDS
        while not self._shutdown.asked.is_set():
            started = loop.time()
            child = self._child()
            living = asyncio.create_task(child.live())
            await wait_for_either(living, child.lose())
            if not living.done():
                # It may be frozen for ever: it is replaced now, and its end is handled when it comes.
                self._zombies.add(living)
                living.add_done_callback(self._zombies.discard)
            elif isinstance(living.exception(), OSError):
                log.error("no child could be started: %s", living.exception())
            else:
                living.result()
                self._refuse_unloadable(child)
            if loop.time() - started > STEADY_SECONDS:
                pause = FIRST_PAUSE_SECONDS
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._shutdown.asked.wait()
            most = MAX_PAUSE_SECONDS if child.was_registered else MAX_PAUSE_UNSTARTED_SECONDS
            pause = min(pause * 2, most)

    def _refuse_unloadable(self, child: ChildProcess) -> None:
        """Give up if no child could ever import the app; if others could, it may be in the middle of a deployment."""
        if child.unloadable is None:
            return
        if not any(other.was_registered for other in self._children):
            raise AppNotFound(child.unloadable)
        log.error("a child could not be started: %s", child.unloadable)

    def _child(self) -> ChildProcess:
        child = ChildProcess(
            self._keeper,
            self._app_name,
            self._settings,
            shutdown=self._shutdown,
            metrics=self._metrics,
            # Not earlier: the app may be one that a child cannot import.
            on_registered=lambda: self._log.log_started(app_parts(self._app).database().where),
        )
        self._children.append(child)
        return child

    async def _connect(self, settings: Settings | None = None) -> "Connection":
        return await app_parts(self._app).database().connect(settings)

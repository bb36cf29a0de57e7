"""The parent of worker processes: starts them, keeps their leases, replaces those that die, and ends in time."""

import asyncio
import contextlib
import logging
from collections import deque
from typing import TYPE_CHECKING

from fenceline.client.app import Fenceline
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
from fenceline.worker.shutdown import Shutdown
from fenceline.worker.worker_metrics import Metrics

if TYPE_CHECKING:
    from fenceline.runtime.pool import Connection

log = logging.getLogger("fenceline.worker")

#: A child that died is replaced at once; when that goes on, with growing pauses. One that could not even start has
#: something wrong that a restart will hardly cure.
FIRST_PAUSE_SECONDS = 0.05
MAX_PAUSE_SECONDS = 1.0
MAX_PAUSE_UNSTARTED_SECONDS = 10.0
#: Children, of now and of before, that may tell whether the app can be imported.
REMEMBERED = 1000
#: A child that has lived for so long starts with a clean slate.
STEADY_SECONDS = 10.0


class Supervisor:
    def __init__(self, app: Fenceline, app_name: str, settings: WorkerSettings, metrics: Metrics | None = None) -> None:
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
        await self._supervise([self._keep_child() for _ in range(self._settings.processes)])

    async def run_once(self) -> int:
        """One child that runs one job; its exit code: 0 done, 1 failed, 2 there was none."""
        exit_codes: list[int] = []

        async def one() -> None:
            child = self._child()
            exit_codes.append(await child.live(once=True))
            self._refuse_unloadable(child)

        await self._supervise([one()])
        # A child that was killed or crashed has not done its job.
        return exit_codes[0] if exit_codes and exit_codes[0] in (0, 1, 2) else 1

    async def _supervise(self, children: "list[asyncio._CoroutineLike[None]]") -> None:
        self._shutdown.ask_on_signals()
        # Before any child: the embedded database and its schema are there when they connect, and what is due is ready
        # to be claimed, also by the only worker that comes by today.
        try:
            await self._reach_database()
            await declare_schedules(app_parts(self._app))
        except BaseException as error:
            for child in children:
                child.close()
            if not failures.is_lost(error) and not failures.is_passing(error):
                raise
            raise DatabaseUnavailable(f"the database cannot be reached: {error}") from error
        await self._leases.maintenance.try_once()
        keeping = asyncio.create_task(self._keeper.run())
        try:
            try:
                async with asyncio.TaskGroup() as tasks:
                    for child in children:
                        tasks.create_task(child)
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
        """A restart of the server, or the like, may last some seconds; after that a person should know."""
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
            losing = asyncio.create_task(child.lose())
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
                    self._refuse_unloadable(child)
            finally:
                losing.cancel()
            if loop.time() - started > STEADY_SECONDS:
                pause = FIRST_PAUSE_SECONDS
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._shutdown.asked.wait()
            most = MAX_PAUSE_SECONDS if child.was_registered else MAX_PAUSE_UNSTARTED_SECONDS
            pause = min(pause * 2, most)

    def _refuse_unloadable(self, child: ChildProcess) -> None:
        """An app that no child has ever imported never will be; one that others have is being deployed, say."""
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
            # An app that cannot be imported in a child has not started.
            on_registered=lambda: self._log.log_started(app_parts(self._app).database().where),
        )
        self._children.append(child)
        return child

    async def _connect(self, settings: Settings | None = None) -> "Connection":
        return await app_parts(self._app).database().connect(settings)

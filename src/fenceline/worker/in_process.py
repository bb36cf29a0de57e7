"""A worker inside another program's process (`await app.run_worker()`), and a runner, which is one over HTTP.

It does what a child of `fenceline worker` does. A separate process keeps its lease, so that a blocked event loop or a
held GIL does not lose it, and gives back what it held when this process dies. The promise is weaker in one point: a
handler that ignores being stopped cannot be killed, only fenced off; `isolated=True` handlers can be killed.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, TypeVar

from fenceline.client.app import App
from fenceline.client.app_parts import app_parts
from fenceline.client.schedule_decorator import declare_schedules
from fenceline.delivery.contract import KeptDelivery
from fenceline.delivery.messages import database_delivery
from fenceline.engine.engine import Engine
from fenceline.engine.running_board import RunningBoard
from fenceline.engine.statistics import RunStatistics
from fenceline.engine.worker_log import WorkerLog
from fenceline.errors import FencelineError
from fenceline.model.worker_settings import WorkerSettings
from fenceline.runtime.reconnecting import ReconnectingConnection
from fenceline.worker import rekey, shutdown
from fenceline.worker.isolated_pool import IsolatedPool
from fenceline.worker.lease_process import LeaseProcess
from fenceline.worker.lifespan import lifespan
from fenceline.worker.shutdown import LAST_SECONDS, Shutdown, wait_for_either

T = TypeVar("T")

log = logging.getLogger("fenceline.worker")


async def run_worker(app: App, settings: WorkerSettings, import_name: str | None = None) -> None:
    """Work until cancelled: then stop claiming, let handlers finish within the grace period, hand back the rest."""
    await prepare(app)
    connect = partial(database_delivery, app, transactions=settings.transactions)
    await InProcessWorker(app, settings, connect, import_name=import_name).run()


async def prepare(app: App) -> None:
    """What comes before a worker with a database of its own: Fenceline's own jobs, and the app's schedules."""
    rekey.add_to(app)
    parts = app_parts(app)
    patient = ReconnectingConnection("schedules", parts.database().connect, codec=parts.codec)
    try:
        # However long the database is away, as for everything that follows: nobody would restart this worker.
        await declare_schedules(parts, patient.call)
    finally:
        patient.close()


class InProcessWorker:
    def __init__(
        self,
        app: App,
        settings: WorkerSettings,
        connect: Callable[[], KeptDelivery],
        *,
        import_name: str | None = None,
        keeper_first: bool = False,
    ) -> None:
        """`connect`: makes a delivery for one registration. `import_name`: where a new process finds the app, for
        isolated handlers. `keeper_first`: claim nothing before the lease is kept from outside.
        """
        self._app = app
        self._settings = settings
        self._connect = connect
        self._import_name = import_name
        self._keeper_first = keeper_first
        self.statistics = RunStatistics(by_kind=settings.metrics)
        self.engine: Engine | None = None  # of the last registration
        self._log = WorkerLog(import_name or "in this process", app_parts(app).handlers, settings)
        self._shutdown = Shutdown()

    async def run(self) -> None:
        """Work until `stop`, or until cancelled. A worker that has lost its lease registers again."""
        async with self._life():
            while not self._shutdown.asked.is_set():
                await self._register_and(Engine.run)
                if not self._shutdown.asked.is_set():
                    log.warning("the worker has lost its lease and starts anew")

    async def run_one(self) -> bool | None:
        """Claim one job, run it and finish it: True, False (it failed) or None (there was none, or we must stop)."""
        async with self._life():
            return await self._register_and(Engine.run_one)

    @asynccontextmanager
    async def _life(self) -> AsyncIterator[None]:
        try:
            async with lifespan(self._app):
                yield
        finally:
            self._log.log_stopped()

    def stop(self) -> None:
        """Stop claiming and let handlers finish; the second call asks them to stop now."""
        self._shutdown.ask()

    def stop_on_signals(self) -> None:
        self._shutdown.ask_on_signals()

    async def _register_and(self, work: Callable[[Engine], Coroutine[Any, Any, T]]) -> T | None:
        """One registration, until it has signed off. None: we were told to stop first."""
        settings, delivery = self._settings, self._connect()
        board = RunningBoard(entries=settings.most_at_once)
        name, has_database = self._import_name, delivery.api.has_database
        isolated = None if name is None else IsolatedPool(name, settings, has_database=has_database)
        engine = self.engine = Engine(
            self._app,
            delivery,
            settings,
            board,
            isolated=isolated,
            renews_lease=delivery.wants_heartbeats,
            statistics=self.statistics,
        )
        keeper = LeaseProcess(delivery, board, engine)
        keeping: asyncio.Task[None] | None = None
        try:
            if self._keeper_first:
                keeping = asyncio.create_task(keeper.run())
                if not await self._unless_stopped(keeper.ready.wait()):
                    return None
            if not await self._unless_stopped(engine.register()):
                return None
            self._log.log_started(delivery.where)
            keeper.announce()
            keeping = keeping or asyncio.create_task(keeper.run_later())
            return await self._work(engine, asyncio.create_task(work(engine)))
        finally:
            if engine.lease.worker_id and not engine.is_lost:
                await self._say_goodbye(engine)
            if keeping is not None:
                keeping.cancel()
                await asyncio.wait({keeping})
            await engine.close()

    async def _work(self, engine: Engine, working: "asyncio.Task[T]") -> T | None:
        try:
            await wait_for_either(working, self._shutdown.asked.wait())
        finally:
            engine.stop()
            await wait_for_either(working, self._shutdown.until_over(self._settings.grace_seconds))
            engine.hurry()
            await asyncio.wait({working}, timeout=LAST_SECONDS)
            working.cancel()
            await asyncio.wait({working})
        return None if working.cancelled() else working.result()

    async def _say_goodbye(self, engine: Engine) -> None:
        try:
            async with asyncio.timeout(shutdown.GOODBYE_SECONDS):
                await engine.sign_off()
        except (FencelineError, OSError) as error:
            log.warning(
                "nobody heard that worker %s has stopped (%s): its lease will end", engine.lease.worker_id, error
            )

    async def _unless_stopped(self, work: Coroutine[Any, Any, Any]) -> bool:
        """Do what may take for ever while there is no answer; False: we were told to stop first."""
        doing = asyncio.create_task(work)
        try:
            await wait_for_either(doing, self._shutdown.asked.wait())
            if doing.done():
                doing.result()
            return doing.done()
        finally:
            doing.cancel()
            await asyncio.gather(doing, return_exceptions=True)

"""A worker inside another program's process (`await app.run_worker()`), and a runner, which is one over HTTP.

It does what a child of `fenceline worker` does. Its lease is kept by a process of its own, so that a blocked event loop
or a held GIL does not lose it, and when this process dies that one gives back what it held. The promise is weaker in
one point: a handler that ignores being stopped cannot be killed, only fenced off; `isolated=True` handlers can be.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, TypeVar

from fenceline.client.app import Fenceline
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
from fenceline.worker import rekey
from fenceline.worker.isolated_pool import IsolatedPool
from fenceline.worker.lease_process import LeaseProcess
from fenceline.worker.lifespan import lifespan
from fenceline.worker.shutdown import Shutdown

T = TypeVar("T")

log = logging.getLogger("fenceline.worker")

#: After the grace period and being asked to stop, handlers have so long before they are left behind, fenced off.
LAST_SECONDS = 1.0
#: The database or the server has so long to take note of the end; what it cannot be told, the lease does.
GOODBYE_SECONDS = 0.7
#: Where nothing calls for it at once, the process that keeps the lease starts so long after the worker.
KEEPER_PAUSE_SECONDS = 2.0


async def run_worker(app: Fenceline, settings: WorkerSettings, import_name: str | None = None) -> None:
    """Work until cancelled: then stop claiming, let handlers finish within the grace period, hand back the rest."""
    rekey.add_to(app)
    parts = app_parts(app)
    patient = ReconnectingConnection("schedules", parts.database().connect, codec=parts.codec)
    try:
        # However long the database is away, as for all that follows: nobody would start this worker again.
        await declare_schedules(parts, patient.call)
    finally:
        patient.close()
    connect = partial(database_delivery, app, transactions=settings.transactions)
    await InProcessWorker(app, settings, connect, import_name=import_name).run()


class InProcessWorker:
    def __init__(
        self,
        app: Fenceline,
        settings: WorkerSettings,
        connect: Callable[[], KeptDelivery],
        *,
        import_name: str | None = None,
        keeper_first: bool = False,
    ) -> None:
        """`connect`: makes a delivery for one registration. `import_name`: where a new process finds the app, for
        isolated handlers. `keeper_first`: nothing is claimed before somebody keeps the lease from outside.
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
        """Work until `stop`, or until cancelled. A worker that has lost its lease starts anew."""
        async with self._life():
            while not self._shutdown.asked.is_set():
                await self._register_and(Engine.run)
                if not self._shutdown.asked.is_set():
                    log.warning("the worker has lost its lease and starts anew")

    async def run_one(self) -> bool | None:
        """Claim one job, run it and finish it: True, False (it failed) or None (there was none, or we are to stop)."""
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
        """Stop claiming, let handlers finish; said again: ask them to stop now."""
        self._shutdown.ask()

    def stop_on_signals(self) -> None:
        self._shutdown.ask_on_signals()

    async def _register_and(self, work: Callable[[Engine], Coroutine[Any, Any, T]]) -> T | None:
        """One registration, from its start until it has signed off. None: it came to nothing."""
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
        keeper = LeaseProcess(delivery, board)
        keeping: asyncio.Task[None] | None = None
        try:
            if self._keeper_first:
                keeping = asyncio.create_task(keeper.run(engine))
                if not await self._unless_stopped(keeper.ready.wait()):
                    return None
            if not await self._unless_stopped(engine.register()):
                return None
            self._log.log_started(delivery.where)
            keeper.notify(engine)
            keeping = keeping or asyncio.create_task(self._keep_later(keeper, engine))
            return await self._work(engine, asyncio.create_task(work(engine)))
        finally:
            if engine.lease.worker_id and not engine.is_lost:
                await self._say_goodbye(engine)
            if keeping is not None:
                keeping.cancel()
                await asyncio.wait({keeping})
            await engine.close()

    async def _work(self, engine: Engine, working: "asyncio.Task[T]") -> T | None:
        told = asyncio.create_task(self._shutdown.asked.wait())
        try:
            await asyncio.wait({working, told}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            told.cancel()
            engine.stop()
            over = asyncio.create_task(self._shutdown.until_over(self._settings.grace_seconds))
            await asyncio.wait({working, over}, return_when=asyncio.FIRST_COMPLETED)
            over.cancel()
            engine.hurry()
            await asyncio.wait({working}, timeout=LAST_SECONDS)
            working.cancel()
            await asyncio.wait({working})
        return None if working.cancelled() else working.result()

    async def _keep_later(self, keeper: LeaseProcess, engine: Engine) -> None:
        """A fresh lease needs nobody yet, and the start of a process costs most when the first jobs come."""
        await asyncio.sleep(min(KEEPER_PAUSE_SECONDS, engine.lease.seconds / 10))
        await keeper.run(engine)

    async def _say_goodbye(self, engine: Engine) -> None:
        try:
            async with asyncio.timeout(GOODBYE_SECONDS):
                await engine.sign_off()
        except (FencelineError, OSError) as error:
            log.warning(
                "nobody heard that worker %s has stopped (%s): its lease will end", engine.lease.worker_id, error
            )

    async def _unless_stopped(self, work: Coroutine[Any, Any, Any]) -> bool:
        """Do what may take for ever while nobody answers; False: we were told to stop meanwhile."""
        doing = asyncio.create_task(work)
        told = asyncio.create_task(self._shutdown.asked.wait())
        try:
            await asyncio.wait({doing, told}, return_when=asyncio.FIRST_COMPLETED)
            if doing.done():
                doing.result()
            return doing.done()
        finally:
            for task in (doing, told):
                task.cancel()
            await asyncio.gather(doing, told, return_exceptions=True)

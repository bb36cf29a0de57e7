"""A runner: registers, claims, runs handlers and reports their ends, all over HTTP.

Its lease is renewed by a helper process too, so a blocked event loop or a held GIL loses nothing, and when this process
dies the helper gives back what it held. The promise is weaker than a worker's in one point: a handler in a thread that
ignores being stopped cannot be killed, only fenced off; `isolated=True` handlers can be.
"""

import asyncio
import contextlib
import json
import logging
import os
import signal
import socket
import time
from collections.abc import AsyncIterator, Coroutine
from importlib.metadata import version
from typing import Any

import httpx

from fenceline.client.app import Fenceline
from fenceline.context.attempt import Attempt, Ending
from fenceline.context.lines import job_logging
from fenceline.errors import RefusedError
from fenceline.runner.claimer import Claimer
from fenceline.runner.client import Client, Forbidden, ServerAway, TokenRefused
from fenceline.runner.desk import HttpDesk
from fenceline.runner.heart import Heart
from fenceline.runner.helper_process import HelperProcess
from fenceline.runner.moments import Moments
from fenceline.runner.spool import Spool
from fenceline.worker.board import Board
from fenceline.worker.executor import Executor
from fenceline.worker.hooks import lifespan
from fenceline.worker.settings import Counters, WorkerSettings

log = logging.getLogger("fenceline.runner")

#: How long a claim that is under way when the runner is told to stop may take to be answered.
LAST_CLAIM_SECONDS = 0.3
#: After the grace period and being asked to stop, handlers have so long before they are left behind, fenced off.
LAST_SECONDS = 0.7
#: The server has so long to take note of the last ends, and of ours; what it cannot be told, the lease does.
GOODBYE_SECONDS = 0.4


class Runner:
    def __init__(
        self,
        app: Fenceline,
        settings: WorkerSettings,
        *,
        url: str,
        token: str,
        app_name: str | None = None,
        labels: dict[str, str] | None = None,
        lease_seconds: float | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        """`app_name`: where a new process finds the app, for isolated handlers. `lease_seconds`: None: the server's."""
        if not app.handlers:
            raise ValueError("the app has no handlers: decorate at least one function with @app.job()")
        self._app = app
        self._settings = settings
        self._labels = labels
        self._lease_seconds = lease_seconds
        self._client = Client(url, token, transport=transport)
        self._desk = HttpDesk(self._client)
        self._board = Board(entries=settings.concurrency + settings.threads + settings.isolated + 64)
        self.counters = Counters()
        self._executor = Executor(
            app,
            settings,
            finish=self._ended,
            board=self._board,
            counters=self.counters,
            desk=self._desk,
            app_name=app_name,
        )
        self._spool = Spool(self._client, self._desk, self.counters, self._executor.changed)
        self._moments = Moments(self._executor, self._client, self._desk)
        self._heart = Heart(self._client, self._executor, self._spool, lose=self._lose)
        self._claimer = self._make_claimer()
        self._helper = HelperProcess(url, token, self._board)
        self._stopping = asyncio.Event()
        self._hurrying = asyncio.Event()

    # Life ------------------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Work until `stop`, and then until what was running has ended or the grace period is over."""
        async with lifespan(self._app), self._loops():
            while not self._stopping.is_set():
                # From the first job on: it may block the loop, or kill the process.
                if not await self._unless_stopped(self._register(), self._helper.ready.wait()):
                    return
                heart = asyncio.create_task(self._heart.run())
                try:
                    await self._claim_until_told(heart)
                    if self._stopping.is_set():
                        await self._shut_down()
                finally:
                    heart.cancel()
            await self._say_goodbye()

    async def run_one(self) -> bool | None:
        """Claim one job, run it and report it: True, False (it failed) or None (there was none, or we are to stop).

        Raises ServerAway where the server is not there to begin with: whoever started us can do so again.
        """
        async with lifespan(self._app), self._loops():
            if not await self._unless_stopped(self._register(patient=False), self._helper.ready.wait()):
                return None
            if not await self._claimer.claim_one():
                await self._say_goodbye()
                return None
            heart = asyncio.create_task(self._heart.run())
            await self._executor.until_idle()
            await self._spool.flushed()
            heart.cancel()
            await self._say_goodbye()
        return bool(self.counters.ended) and set(self.counters.ended) <= {"succeeded", "succeeded_with_errors"}

    def stop(self) -> None:
        """Stop claiming, let handlers finish; said again: ask them to stop now."""
        if self._stopping.is_set():
            self._hurrying.set()
        self._stopping.set()
        self._claimer.stopping = True
        self._executor.changed.set()
        self._executor.shut_down()

    def stop_on_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stop)

    @contextlib.asynccontextmanager
    async def _loops(self) -> AsyncIterator[None]:
        """What goes on in the background, whatever registration we work under."""
        loops = [
            asyncio.create_task(loop, name=name)
            for name, loop in (
                ("executor", self._executor.run()),
                ("spool", self._spool.run()),
                ("moments", self._moments.run()),
                ("helper", self._helper.run()),
            )
        ]
        failed = asyncio.current_task()
        for loop in loops:
            loop.add_done_callback(lambda ended: _pass_on(ended, failed))
        try:
            with job_logging():
                yield
        except asyncio.CancelledError:
            for loop in loops:
                if loop.done() and not loop.cancelled() and loop.exception() is not None:
                    raise loop.exception() from None  # type: ignore[misc]  # it is there, as the line above asks
            raise
        finally:
            for loop in loops:
                loop.cancel()
            await asyncio.gather(*loops, return_exceptions=True)
            self._executor.close()
            await self._executor.wait_closed()
            await self._client.close()
            self._board.close()

    async def _register(self, *, patient: bool = True) -> None:
        """Make this process known to the server, under a new id. Raises TokenRefused, and unless patient ServerAway."""
        asked = time.monotonic()
        lanes = self._settings.lanes
        body: dict[str, Any] = {
            "name": self._settings.name or f"{socket.gethostname()}:{os.getpid()}",
            "lanes": None if lanes is None else list(lanes),
            "kinds": sorted(self._app.handlers),
            "labels": self._labels,
            "host": socket.gethostname(),
            "version": version("fenceline"),
            "lease_seconds": self._lease_seconds,
        }
        try:
            ask = self._client.ask if patient else self._client.ask_once
            runner = await ask("POST", "/v1/runners", json.dumps(body))
        except Forbidden as error:
            raise TokenRefused(f"{error}: give the runner a token of the role `runner`") from error
        self._heart.registered(runner["id"], runner["lease_seconds"], asked)
        self._claimer = self._make_claimer()
        self._claimer.runner_id = runner["id"]
        self._executor.worker_id = runner["id"]
        self._helper.keep(runner["id"], runner["lease_seconds"])
        log.info("registered as runner %s (%s)", runner["id"], runner["name"])

    async def _claim_until_told(self, heart: "asyncio.Task[None]") -> None:
        """Claim until we are to stop, or the lease is lost. Raises TokenRefused."""
        claiming = asyncio.create_task(self._claimer.run())
        told = asyncio.create_task(self._stopping.wait())
        try:
            await asyncio.wait({claiming, told, heart}, return_when=asyncio.FIRST_COMPLETED)
            self._claimer.stopping = True
            self._executor.changed.set()
            # A claim under way would bring more; its answer is awaited, but not for ever.
            await asyncio.wait({claiming}, timeout=LAST_CLAIM_SECONDS if self._stopping.is_set() else 0)
        finally:
            told.cancel()
            claiming.cancel()
            await asyncio.wait({claiming})
        for task in (claiming, heart):
            if task.done() and not task.cancelled():
                task.result()
        if self._claimer.lost.is_set():
            self._lose()

    async def _shut_down(self) -> None:
        for attempt in self._executor.take_back():
            self._spool.add(Ending(attempt, outcome="released"))
        idle = asyncio.create_task(self._executor.until_idle())
        hurried = asyncio.create_task(self._hurrying.wait())
        await asyncio.wait({idle, hurried}, timeout=self._settings.grace_seconds, return_when=asyncio.FIRST_COMPLETED)
        hurried.cancel()
        if not idle.done():
            self._executor.cancel_all()
            await asyncio.wait({idle}, timeout=LAST_SECONDS)
            idle.cancel()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(GOODBYE_SECONDS):
                await self._spool.flushed()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(GOODBYE_SECONDS):
                await self._executor.retire()

    async def _unless_stopped(self, *work: Coroutine[Any, Any, Any]) -> bool:
        """Do what may take for ever while the server is away; False: we were told to stop meanwhile."""
        doing: asyncio.Future[Any] = asyncio.gather(*work)
        told: asyncio.Future[Any] = asyncio.create_task(self._stopping.wait())
        try:
            await asyncio.wait({doing, told}, return_when=asyncio.FIRST_COMPLETED)
            if doing.done():
                doing.result()
            return doing.done()
        finally:
            for task in (doing, told):
                task.cancel()
            await asyncio.gather(doing, told, return_exceptions=True)

    async def _say_goodbye(self) -> None:
        """Sign off: what we still hold goes back, or fails where the kind says so."""
        fail_kinds = [kind for kind, handler in self._app.handlers.items() if handler.on_shutdown == "fail"]
        path = f"/v1/runners/{self._heart.runner_id}/stop"
        body = json.dumps({"fail_kinds": fail_kinds})
        try:
            await self._client.ask_once("POST", path, body, answer_seconds=GOODBYE_SECONDS)
        except (RefusedError, ServerAway) as error:
            log.warning("the server did not hear that the runner has stopped (%s): its lease will", error)
        self._helper.say_goodbye()

    def _lose(self) -> None:
        """The lease is over, or about to be: stop everything, nothing that is written now will be accepted."""
        self._claimer.stopping = True
        self._executor.take_back()
        for attempt_id in list(self._executor.running):
            self._executor.abandon(attempt_id)

    # Parts -----------------------------------------------------------------------------------------------------------

    def _make_claimer(self) -> Claimer:
        return Claimer(
            self._client,
            self._executor,
            self._settings,
            self.counters,
            modes={kind: self._executor.mode_of(kind) for kind in self._app.handlers},
            submit=self._submit,
            spooled=lambda: len(self._spool.held),
        )

    def _submit(self, attempts: list[Attempt]) -> None:
        for attempt in attempts:
            self._desk.open(attempt.job_id, attempt.attempt_id)
        self._executor.submit(attempts)

    def _ended(self, ending: Ending) -> None:
        if ending.ran_seconds is not None:
            self._claimer.note_run_time(ending.ran_seconds)
        self._spool.add(ending)


def _pass_on(ended: "asyncio.Task[Any]", to: "asyncio.Task[Any] | None") -> None:
    """A loop that fails ends the runner."""
    if to is not None and not ended.cancelled() and ended.exception() is not None:
        to.cancel()

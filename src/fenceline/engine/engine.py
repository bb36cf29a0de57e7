"""One process's worth of worker, over any delivery: claims, runs, reports and finishes.

Its lease is best kept from outside (ADR 5), because an event loop that a handler blocks could not renew it; the keeper
then reports every renewal (`note_renewed`). With or without a keeper, handlers stop before the lease ends.
"""

import asyncio
import logging
import os
import socket
import time
from collections.abc import Coroutine
from importlib.metadata import version
from typing import Any
from uuid import UUID

from fenceline.client.app import App
from fenceline.client.app_parts import app_parts
from fenceline.client.handler_parts import HandlerParts, handler_parts
from fenceline.context.attempt import Ending
from fenceline.context.log_lines import job_logging
from fenceline.delivery.contract import AttemptNotice, Delivery, Lease, Notices, WorkerRecord
from fenceline.engine.claim_policy import ClaimPolicy
from fenceline.engine.executor import Executor
from fenceline.engine.finisher import Finisher
from fenceline.engine.progress_reporter import ProgressReporter
from fenceline.engine.running_attempt import IsolatedRuns
from fenceline.engine.running_board import PULSE_SECONDS, RunningBoard
from fenceline.engine.statistics import RunStatistics
from fenceline.errors import FencelineError, WorkerLost
from fenceline.model.outcome import Mode
from fenceline.model.worker_settings import BEATS_PER_LEASE, LEASE_MARGIN, WorkerSettings

log = logging.getLogger("fenceline.worker")

#: How long to wait for the answer to a claim that is under way when the worker is told to stop.
LAST_CLAIM_SECONDS = 0.5
#: Where the lease is renewed from inside: the longest pause between heartbeats, which also bring cancels; and the pause
#: after one that was not answered.
MAX_BEAT_SECONDS = 5.0
RETRY_SECONDS = 0.5
SILENT_LOOKS = 2


class ImportNameMissing(FencelineError):
    """Isolated handlers need processes that can import the app, and no import name was given."""


class Engine:
    def __init__(
        self,
        app: App,
        delivery: Delivery,
        settings: WorkerSettings,
        board: RunningBoard | None = None,
        *,
        isolated: IsolatedRuns | None = None,
        isolates: bool = True,
        renews_lease: bool = False,
        statistics: RunStatistics | None = None,
    ) -> None:
        """`isolated`: processes for isolated handlers, where there can be any. `isolates`: False runs isolated handlers
        here, like the others. `renews_lease`: from inside, because nobody does it from outside, or because the delivery
        needs to know what is held.
        """
        self._app = app
        self._delivery = delivery
        self._settings = settings
        self._isolated = isolated
        self._renews_lease = renews_lease
        self.lease = Lease(0, settings.lease_seconds)
        self.statistics = statistics or RunStatistics(by_kind=settings.metrics)
        self._board = board or RunningBoard()
        self._pulse: asyncio.TimerHandle | None = None
        self._listening: list[asyncio.Task[None]] = []  # between calls of `run_one` and `run_next`
        self._executor = Executor(
            app,
            settings,
            delivery,
            finish=self._ended,
            board=self._board,
            statistics=self.statistics,
            isolated=isolated,
            isolates=isolates,
        )
        self._places = self._executor.places
        self._finisher = Finisher(delivery, self.statistics, on_sent=self._places.changed.set)
        self._reporter = ProgressReporter(self._executor, delivery)
        self._policy = ClaimPolicy(
            delivery,
            settings,
            places=self._places,
            finisher=self._finisher,
            statistics=self.statistics,
            home_lanes=self._home_lanes(),
            lose=self.lose,
        )
        self._stop = asyncio.Event()
        self.is_lost = False  # the lease
        self._renewed = time.monotonic()

    @property
    def _handlers(self) -> dict[str, HandlerParts]:
        return {kind: handler_parts(handler) for kind, handler in app_parts(self._app).handlers.items()}

    @property
    def fail_kinds(self) -> list[str]:
        return [kind for kind, handler in self._handlers.items() if handler.on_shutdown == "fail"]

    async def register(self) -> Lease:
        """Register this process under a new id. Raises ImportNameMissing, and what the delivery raises."""
        handlers = self._handlers
        if not handlers:
            raise ValueError("the app has no handlers: decorate at least one function with @app.job()")
        isolated = [kind for kind, mode in self._places.modes.items() if mode is Mode.ISOLATED]
        if isolated and self._isolated is None:
            raise ImportNameMissing(
                f"kinds {', '.join(isolated)} are isolated: their processes must be able to import the app, so use "
                '`fenceline worker module:app`, or the option import_name="module:app" of run_worker or ArqPart'
            )
        host, pid = socket.gethostname(), os.getpid()
        asked = time.monotonic()
        self.lease = await self._delivery.register(
            WorkerRecord(
                name=self._settings.name or f"{host}:{pid}",
                host=host,
                pid=pid,
                version=version("fenceline"),
                kinds={kind: handler.declaration for kind, handler in handlers.items()},
                signatures={
                    f"{kind} {handler.arguments.fingerprint}": handler.arguments.signature
                    for kind, handler in handlers.items()
                },
                lanes=self._settings.lanes,
                labels=self._settings.labels,
                lease_seconds=self._settings.lease_seconds,
            )
        )
        self._renewed = asked
        self._reporter.check_seconds = self.lease.seconds / 4
        if self._isolated is not None:
            self._isolated.worker_id = self.lease.worker_id
        self._show_pulse()
        for line in self._delivery.cannot:
            log.info("%s", line)
        return self.lease

    async def run(self) -> None:
        """Work until `stop` is called or the lease is lost, and what was running has ended. Call `register` first."""
        policy = self._policy
        with job_logging():
            try:
                async with asyncio.TaskGroup() as tasks:
                    claiming = tasks.create_task(policy.run(), name="claims")
                    loops = [
                        tasks.create_task(loop, name=name) for name, loop in (self._loops() | self._listeners()).items()
                    ]
                    loops.append(tasks.create_task(self._watch_lease(), name="lease"))
                    await self._stop.wait()
                    policy.stopping = True
                    policy.wake()
                    # A claim that is under way may bring more; its answer is awaited, but not for ever.
                    await asyncio.wait({claiming}, timeout=LAST_CLAIM_SECONDS)
                    claiming.cancel()
                    self._finisher.hand_back(self._places.take_back())
                    await self._see_through()
                    for loop in loops:
                        loop.cancel()
            except BaseExceptionGroup as group:
                raise group.exceptions[0] from None

    async def run_one(self) -> bool | None:
        """Claim one job, run it and finish it: True, False (it failed) or None (there was none)."""
        with job_logging():
            if not await self._policy.claim_one():
                return None
            await self._run_claimed()
        return self.statistics.all_succeeded

    async def run_next(self) -> int:
        """As `run_one`, but a whole batch where the kind has batches; returns how many jobs that was."""
        with job_logging():
            claimed = await self._policy.claim_one()
            for attempt in self._places.waiting_in(Mode.BATCH):
                claimed += await self._policy.claim_beside(attempt, self._executor.room_beside(attempt))
            if claimed:
                await self._run_claimed()
        return claimed

    async def _run_claimed(self) -> None:
        self._executor.batches.hurry()
        if not self._listening:  # until `close`: to stop listening closes the connection that claims
            self._listening = [asyncio.create_task(loop, name=name) for name, loop in self._listeners().items()]
        loops = [asyncio.create_task(loop, name=name) for name, loop in self._loops().items()]
        try:
            await self._see_through()
        finally:
            for loop in loops:
                loop.cancel()

    async def _see_through(self) -> None:
        """Wait until all that runs has ended and the delivery knows it."""
        await self._places.until_idle()
        await self._finisher.flushed()
        if self._isolated is not None:
            await self._isolated.retire()

    def _loops(self) -> dict[str, Coroutine[Any, Any, None]]:
        loops = {
            "executor": self._executor.run(),
            "finisher": self._finisher.run(),
            "starts": self._executor.starts.run(),
            "reporter": self._reporter.run(),
        }
        if self._renews_lease:
            loops["renewer"] = self._renew_lease()
        return loops

    def _listeners(self) -> dict[str, Coroutine[Any, Any, None]]:
        return {
            "hints": self._reporter.follow_hints(),
            "listener": self._delivery.listen(Notices(self._policy.wake, self._reporter.hint)),
        }

    def _home_lanes(self) -> dict[str, set[Mode]]:
        home_lanes: dict[str, set[Mode]] = {}
        for kind, handler in self._handlers.items():
            lane = handler.kind_settings.get("lane", "default")
            home_lanes.setdefault(lane, set()).add(self._places.modes[kind])
        return home_lanes

    # Told from outside -----------------------------------------------------------------------------------------------

    def stop(self) -> None:
        """Stop claiming, hand back what has not started, end when the rest has."""
        self._executor.shut_down()
        self._stop.set()

    def hurry(self) -> None:
        """Ask the handlers that still run to stop."""
        self._executor.cancel_all()

    async def until_idle(self) -> None:
        """Wait until nothing runs or waits to run."""
        await self._places.until_idle()

    @property
    def running(self) -> int:
        return len(self._places.running)

    def note_renewed(self, at: float) -> None:
        """The lease was renewed at this time of the monotonic clock, which processes share."""
        self._renewed = max(self._renewed, at)

    def request_cancel(self, attempt_id: UUID) -> None:
        self._executor.request_cancel(attempt_id)

    def lose(self) -> None:
        """The lease is over, or about to be: stop everything, because no further write will be accepted."""
        log.error("the lease could not be renewed: handlers are stopped before it ends")
        self.is_lost = True
        self._policy.stopping = True
        self._places.take_back()
        for attempt_id in list(self._places.running):
            self._executor.abandon(attempt_id)
        self._stop.set()

    async def sign_off(self) -> None:
        """Give back what is still held, or fail it where the kind says so. Raises as `Delivery.sign_off`."""
        await self._delivery.sign_off(self.fail_kinds)

    def take_counts(self) -> dict[str, Any]:
        """For metrics: what has happened since the last call, and what is going on now."""
        return {
            **self.statistics.take(),
            "running": self.running,
            "waiting": self._places.waiting,
            "lost_places": self._places.lost,
        }

    async def close(self) -> None:
        """Returns when the processes of isolated handlers have ended."""
        if self._pulse is not None:
            self._pulse.cancel()
        for loop in self._listening:
            loop.cancel()
        await self._executor.close()
        await self._delivery.close()
        self._board.close()

    # Between the parts -----------------------------------------------------------------------------------------------

    def _show_pulse(self) -> None:
        """Show the lease's keeper that the loop turns."""
        self._board.beat()
        self._pulse = asyncio.get_running_loop().call_later(PULSE_SECONDS, self._show_pulse)

    def _ended(self, ending: Ending) -> None:
        if ending.ran_seconds is not None:
            self._policy.note_run_time(ending.attempt.lane, ending.ran_seconds)
        self._finisher.add(ending)

    async def _renew_lease(self) -> None:
        """Renew the lease from inside until it is lost: name all that is held, and do what the answer asks for."""
        period = self.lease.seconds / BEATS_PER_LEASE
        while True:
            pause = min(period, MAX_BEAT_SECONDS)
            asked = time.monotonic()  # the lease counts from before the question
            # What runs, what waits to, and what has ended without the database knowing it yet.
            held = [*(attempt.attempt_id for attempt in self._places.held), *self._finisher.held]
            try:
                async with asyncio.timeout(max(period, 1.0)):
                    notices = await self._delivery.heartbeat(held)
            except WorkerLost as error:
                log.error("this worker was taken for dead: %s", error)  # noqa: TRY400 - no bug
                self.lose()
                return
            except (FencelineError, OSError) as error:
                log.warning("a heartbeat was not answered: %s", error)
                pause = min(pause, RETRY_SECONDS)
            else:
                self.note_renewed(asked)
                self._heed(notices)
            await asyncio.sleep(pause)

    def _heed(self, notices: list[AttemptNotice]) -> None:
        self._reporter.heed(notices)
        for item in notices:
            if item.notice == "stale":
                self._finisher.drop(item.attempt_id)

    async def _watch_lease(self) -> None:
        """Stop the handlers when no renewal was reported in time: the keeper is frozen, or the database is away.

        It takes two looks in a row, with a turn of the loop between: after a handler has blocked the loop, the news of
        a renewal may still be waiting to be read.
        """
        overdue = 0
        while overdue < SILENT_LOOKS:
            await asyncio.sleep(min(0.5, self.lease.seconds / 20))
            silent = time.monotonic() - self._renewed > self.lease.seconds * LEASE_MARGIN
            overdue = overdue + 1 if silent else 0
        self.lose()

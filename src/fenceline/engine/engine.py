"""One process's worth of worker, over any delivery: claims, runs, reports and finishes.

Its lease is best kept from outside (ADR 5), because an event loop that a handler blocks could not renew it; then the
keeper tells of every renewal (`note_renewed`). With or without a keeper, handlers stop before the lease ends.
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

from fenceline.client.app import Fenceline
from fenceline.client.app_parts import app_parts
from fenceline.client.handler_parts import handler_parts
from fenceline.context.attempt import Ending
from fenceline.context.log_lines import job_logging
from fenceline.delivery.contract import AttemptNotice, Delivery, Lease, Notices, WorkerRecord
from fenceline.engine.claim_policy import ClaimPolicy
from fenceline.engine.executor import Executor
from fenceline.engine.finisher import Finisher
from fenceline.engine.lease_renewer import LeaseRenewer
from fenceline.engine.progress_reporter import ProgressReporter
from fenceline.engine.running_attempt import IsolatedRuns
from fenceline.engine.running_board import PULSE_SECONDS, RunningBoard
from fenceline.engine.starts import Starts
from fenceline.engine.statistics import RunStatistics
from fenceline.errors import FencelineError
from fenceline.model.outcome import Mode
from fenceline.model.worker_settings import LEASE_MARGIN, WorkerSettings

log = logging.getLogger("fenceline.worker")

#: How long a claim that is under way when the worker is told to stop may take to be answered.
LAST_CLAIM_SECONDS = 0.5
SILENT_LOOKS = 2


class ImportNameMissing(FencelineError):
    """Isolated handlers need processes that can import the app, and nobody has said under what name."""


class Engine:
    def __init__(
        self,
        app: Fenceline,
        delivery: Delivery,
        settings: WorkerSettings,
        board: RunningBoard | None = None,
        *,
        isolated: IsolatedRuns | None = None,
        isolates: bool = True,
        renews_lease: bool = False,
        statistics: RunStatistics | None = None,
    ) -> None:
        """`isolated`: processes for isolated handlers, where there can be any. `isolates`: False: isolated handlers run
        here, like the others. `renews_lease`: by itself, because nobody does from outside, or because the delivery
        wants to hear what is held.
        """
        self._app = app
        self._delivery = delivery
        self._settings = settings
        self._isolated = isolated
        self._renews_lease = renews_lease
        self.lease = Lease(0, settings.lease_seconds)
        self.statistics = statistics or RunStatistics(by_kind=settings.metrics)
        self._starts = Starts(delivery)
        self._board = board or RunningBoard()
        self._pulse: asyncio.TimerHandle | None = None
        self._executor = Executor(
            app,
            settings,
            finish=self._ended,
            board=self._board,
            statistics=self.statistics,
            api=delivery.api,
            starts=self._starts,
            isolated=isolated,
            isolates=isolates,
        )
        self._places = self._executor.places
        self._finisher = Finisher(delivery, self.statistics, on_sent=self._places.changed.set)
        self._reporter = ProgressReporter(self._executor, delivery)
        self._policy = self._make_policy()
        self._stop = asyncio.Event()
        self.is_lost = False  # the lease
        self._renewed = time.monotonic()

    @property
    def fail_kinds(self) -> list[str]:
        return [
            kind
            for kind, handler in app_parts(self._app).handlers.items()
            if handler_parts(handler).on_shutdown == "fail"
        ]

    async def register(self) -> Lease:
        """Make this process known, under a new id. Raises ImportNameMissing, and what the delivery raises."""
        handlers = {kind: handler_parts(handler) for kind, handler in app_parts(self._app).handlers.items()}
        if not handlers:
            raise ValueError("the app has no handlers: decorate at least one function with @app.job()")
        isolated = [kind for kind, mode in self._places.modes.items() if mode is Mode.ISOLATED]
        if isolated and self._isolated is None:
            raise ImportNameMissing(
                f"kinds {', '.join(isolated)} are isolated: their processes must be able to import the app, so use "
                '`fenceline worker module:app`, or app.run_worker(import_name="module:app")'
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
        """Work until `stop` is called, or the lease is lost, and what was running has ended. `register` comes first."""
        policy = self._policy
        with job_logging():
            try:
                async with asyncio.TaskGroup() as tasks:
                    claiming = tasks.create_task(policy.run(), name="claims")
                    loops = [tasks.create_task(loop, name=name) for name, loop in self._loops().items()]
                    loops.append(tasks.create_task(self._watch_lease(), name="lease"))
                    await self._stop.wait()
                    policy.stopping = True
                    policy.wake()
                    # A claim under way would bring more; its answer is awaited, but not for ever.
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
        """As `run_one`, but of a kind that is run in batches a whole batch; how many jobs that was."""
        with job_logging():
            claimed = await self._policy.claim_one()
            for attempt in self._places.waiting_in(Mode.BATCH):
                claimed += await self._policy.claim_beside(attempt, self._executor.room_beside(attempt))
            if claimed:
                await self._run_claimed()
        return claimed

    async def _run_claimed(self) -> None:
        self._executor.batches.hurry()
        loops = [asyncio.create_task(loop, name=name) for name, loop in self._loops().items()]
        try:
            await self._see_through()
        finally:
            for loop in loops:
                loop.cancel()

    async def _see_through(self) -> None:
        """Until what runs has ended, and that is known."""
        await self._places.until_idle()
        await self._finisher.flushed()
        if self._isolated is not None:
            await self._isolated.retire()

    def _loops(self) -> dict[str, Coroutine[Any, Any, None]]:
        loops = {
            "executor": self._executor.run(),
            "finisher": self._finisher.run(),
            "starts": self._starts.run(),
            "reporter": self._reporter.run(),
            "hints": self._reporter.follow_hints(),
            "listener": self._delivery.listen(Notices(self._policy.wake, self._reporter.hint)),
        }
        if self._renews_lease:
            loops["renewer"] = LeaseRenewer(self._delivery, self.lease.seconds, self).run()
        return loops

    def _make_policy(self) -> ClaimPolicy:
        home_lanes: dict[str, set[Mode]] = {}
        for kind, handler in app_parts(self._app).handlers.items():
            lane = handler_parts(handler).kind_settings.get("lane", "default")
            home_lanes.setdefault(lane, set()).add(self._places.modes[kind])
        return ClaimPolicy(
            self._delivery,
            self._settings,
            places=self._places,
            finisher=self._finisher,
            statistics=self.statistics,
            home_lanes=home_lanes,
            lose=self.lose,
        )

    # Told from outside -----------------------------------------------------------------------------------------------

    def stop(self) -> None:
        """Stop claiming, hand back what has not started, end when the rest has."""
        self._executor.shut_down()
        self._stop.set()

    def hurry(self) -> None:
        """Ask the handlers that still run to stop."""
        self._executor.cancel_all()

    async def until_idle(self) -> None:
        """Until nothing runs or waits to."""
        await self._places.until_idle()

    @property
    def running(self) -> int:
        return len(self._places.running)

    def note_renewed(self, at: float) -> None:
        """The lease was renewed: it counts from then on, by the monotonic clock, which processes share."""
        self._renewed = max(self._renewed, at)

    def request_cancel(self, attempt_id: UUID) -> None:
        self._executor.request_cancel(attempt_id)

    def lose(self) -> None:
        """The lease is over, or about to be: stop everything, nothing that is written now will be accepted."""
        log.error("the lease could not be renewed: handlers are stopped before it ends")
        self.is_lost = True
        self._policy.stopping = True
        self._places.take_back()
        for attempt_id in list(self._places.running):
            self._executor.abandon(attempt_id)
        self._stop.set()

    async def sign_off(self) -> None:
        """What is still held goes back, or fails where the kind says so. Raises as `Delivery.sign_off`."""
        await self._delivery.sign_off(self.fail_kinds)

    def take_counts(self) -> dict[str, Any]:
        """For metrics: what has happened since the last time, and how things are now."""
        return {
            **self.statistics.take(),
            "running": self.running,
            "waiting": self._places.waiting,
            "lost_places": self._places.lost,
        }

    async def close(self) -> None:
        """Let go of everything; the processes of isolated handlers have ended then."""
        if self._pulse is not None:
            self._pulse.cancel()
        await self._executor.close()
        await self._delivery.close()
        self._board.close()

    # Between the parts -----------------------------------------------------------------------------------------------

    def _show_pulse(self) -> None:
        """Show whoever keeps the lease that the loop turns."""
        self._board.beat()
        self._pulse = asyncio.get_running_loop().call_later(PULSE_SECONDS, self._show_pulse)

    def _ended(self, ending: Ending) -> None:
        if ending.ran_seconds is not None:
            self._policy.note_run_time(ending.attempt.lane, ending.ran_seconds)
        self._finisher.add(ending)

    @property
    def held(self) -> list[UUID]:
        """The attempts that run, wait to, or whose ends are on their way."""
        return [*(attempt.attempt_id for attempt in self._places.held), *self._finisher.held]

    def heed(self, notices: list[AttemptNotice]) -> None:
        self._reporter.heed(notices)
        for item in notices:
            if item.notice == "stale":
                self._finisher.drop(item.attempt_id)

    async def _watch_lease(self) -> None:
        """Whoever renews the lease tells of it. When nobody does, because a keeper is frozen or nobody answers,
        handlers stop all the same.

        Twice in a row, with a turn of the loop between: after a handler has blocked it, the good news may still be
        waiting to be read.
        """
        overdue = 0
        while overdue < SILENT_LOOKS:
            await asyncio.sleep(min(0.5, self.lease.seconds / 20))
            silent = time.monotonic() - self._renewed > self.lease.seconds * LEASE_MARGIN
            overdue = overdue + 1 if silent else 0
        self.lose()

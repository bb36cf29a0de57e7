"""One process's worth of worker: claims, runs and finishes, on three connections.

It does not renew its own lease: a keeper in another process does (`keeper`), because an event loop that a handler
blocks could not.
"""

import asyncio
import logging
import os
import socket
import time
from importlib.metadata import version
from typing import Any
from uuid import UUID

from fenceline.client.app import Fenceline
from fenceline.client.listener import Listener
from fenceline.context.attempt import Attempt, Ending
from fenceline.context.desk import SqlDesk
from fenceline.context.lines import job_logging
from fenceline.database import worker_calls
from fenceline.errors import FencelineError
from fenceline.worker.board import Board
from fenceline.worker.claimer import Claimer
from fenceline.worker.executor import Executor
from fenceline.worker.finisher import Finisher
from fenceline.worker.keeper import LEASE_MARGIN
from fenceline.worker.line import Line
from fenceline.worker.link import Link
from fenceline.worker.moments import Moments
from fenceline.worker.settings import Counters, WorkerSettings
from fenceline.worker.tally import Tally

log = logging.getLogger("fenceline.worker")

#: How long a claim that is under way when the worker is told to stop may take to be answered.
LAST_CLAIM_SECONDS = 0.5
SILENT_LOOKS = 2


class ImportNameMissing(FencelineError):  # noqa: N818 - as the exceptions in errors.py
    """Isolated handlers need processes that can import the app, and nobody has said under what name."""


class Child:
    def __init__(
        self, app: Fenceline, settings: WorkerSettings, board: Board | None = None, *, app_name: str | None = None
    ) -> None:
        """`app_name`: where a new process finds the app; needed for isolated handlers."""
        self._app = app
        self._app_name = app_name
        self._settings = settings
        self._caller = app.caller()
        self._claim_line = Line("claim", self._caller.connect)
        self._finish_line = Line("finish", self._caller.connect)
        self.counters = Counters(tally=Tally() if settings.metrics else None)
        self.worker_id = 0
        self._finisher = Finisher(self._finish_line.call, self.counters)
        self._desk = SqlDesk(self._finish_line.call)
        self._executor = Executor(
            app,
            settings,
            finish=self._ended,
            board=board or Board(),
            counters=self.counters,
            desk=self._desk,
            app_name=app_name,
        )
        self._moments = Moments(self._executor, self._finish_line.call, check_seconds=settings.lease_seconds / 4)
        self._claimer: Claimer | None = None
        self._listener: Listener | None = None
        self._stop = asyncio.Event()
        self._renewed = time.monotonic()
        self._counted = (0, 0)

    @property
    def fail_kinds(self) -> list[str]:
        return [kind for kind, handler in self._app.handlers.items() if handler.on_shutdown == "fail"]

    async def register(self) -> int:
        """Make this process known to the database; returns the worker's id."""
        if not self._app.handlers:
            raise ValueError("the app has no handlers: decorate at least one function with @app.job()")
        isolated = [kind for kind, handler in self._app.handlers.items() if handler.isolated]
        if isolated and self._app_name is None:
            raise ImportNameMissing(
                f"kinds {', '.join(isolated)} are isolated: their processes must be able to import the app, so use "
                '`fenceline worker module:app`, or app.run_worker(import_name="module:app")'
            )
        await self._claim_line.call(
            worker_calls.declare_kinds({kind: handler.declaration for kind, handler in self._app.handlers.items()})
        )
        lanes = self._settings.lanes
        host, pid = socket.gethostname(), os.getpid()
        self.worker_id = await self._claim_line.call(
            worker_calls.register_worker(
                self._settings.name or f"{host}:{pid}",
                lease_seconds=self._settings.lease_seconds,
                kinds=sorted(self._app.handlers),
                lanes=None if lanes is None else list(lanes),
                host=host,
                pid=pid,
                version=version("fenceline"),
            )
        )
        self._executor.worker_id = self.worker_id
        if lanes is not None:
            found = await self._claim_line.call(worker_calls.worker_lanes(list(lanes), self.worker_id))
            for name in sorted(set(lanes) - {lane.name for lane in found}):
                # It may be made later, so this is no reason to stop; mistyped, it would never have a job.
                log.warning("lane %r does not exist: make it with `fenceline lanes set %s --create`", name, name)
        return self.worker_id

    async def run(self) -> None:
        """Work until `stop` is called and what was running has ended. `register` comes first."""
        claimer = self._claimer = self._make_claimer(self._settings)
        listener = self._listener = Listener(
            self._caller.connect,
            {
                "fenceline_ready": claimer.wake,
                "fenceline_cancel": self._hear_cancel,
                "fenceline_lock": self._desk.hear_lock,
            },
            on_connect=claimer.wake,
            send=self._claim_line.call,
        )
        with job_logging():
            async with asyncio.TaskGroup() as tasks:
                claiming = tasks.create_task(claimer.run(), name="claimer")
                loops = [
                    tasks.create_task(loop, name=name)
                    for name, loop in (
                        ("executor", self._executor.run()),
                        ("finisher", self._finisher.run()),
                        ("listener", listener.run()),
                        ("moments", self._moments.run()),
                        ("lease", self._watch_lease()),
                    )
                ]
                await self._until_stopped(claimer)
                claimer.stopping = True
                claimer.wake()
                # A claim under way would bring more; its answer is awaited, but not for ever.
                await asyncio.wait({claiming}, timeout=LAST_CLAIM_SECONDS)
                claiming.cancel()
                self._hand_back(self._executor.take_back())
                await self._executor.until_idle()
                await self._finisher.flushed()
                await self._executor.retire()
                for loop in loops:
                    loop.cancel()

    async def run_one(self) -> bool | None:
        """Claim one job, run it and finish it: True, False (it failed) or None (there was none)."""
        claimer = self._claimer = self._make_claimer(
            WorkerSettings(lanes=self._settings.lanes, concurrency=1, threads=1, batch=1)
        )
        with job_logging():
            if not await claimer.claim_one():
                return None
            loops = [asyncio.create_task(loop) for loop in (self._executor.run(), self._moments.run())]
            await self._executor.until_idle()
            await self._finisher.run_once()
            await self._executor.retire()
            for loop in loops:
                loop.cancel()
        # An attempt that was taken away has no end here, or one that came too late.
        ended, good = set(self.counters.ended), {"succeeded", "succeeded_with_errors"}
        return bool(ended) and ended <= good and self.counters.stale == 0

    def _make_claimer(self, settings: WorkerSettings) -> Claimer:
        modes = {kind: self._executor.mode_of(kind) for kind in self._app.handlers}
        home_lanes: dict[str, set[str]] = {}
        for kind, handler in self._app.handlers.items():
            home_lanes.setdefault(handler.says.get("lane", "default"), set()).add(modes[kind])
        return Claimer(
            self.worker_id,
            settings,
            executor=self._executor,
            counters=self.counters,
            run=self._claim_line.call,
            read_lanes=lambda: self._claim_line.call(
                worker_calls.worker_lanes(_listed(self._settings.lanes), self.worker_id)
            ),
            hand_back=self._hand_back,
            modes=modes,
            home_lanes=home_lanes,
            is_deaf=lambda: self._listener is None or self._listener.deaf,
        )

    def _hand_back(self, attempts: list[Attempt]) -> None:
        for attempt in attempts:
            self._finisher.add(Ending(attempt, outcome="released"))

    def stop(self) -> None:
        """Stop claiming, hand back what has not started, end when the rest has."""
        self._executor.shut_down()
        self._stop.set()

    def hurry(self) -> None:
        """Ask the handlers that still run to stop."""
        self._executor.cancel_all()

    async def obey(self, link: Link) -> None:
        """Do what the keeper of the lease says, until it is gone."""
        while (message := await link.receive()) is not None:
            if "renewed" in message:
                self._renewed = message["renewed"]  # by the monotonic clock, which processes share
            elif "cancel" in message:
                for attempt_id in message["cancel"]:
                    self._executor.request_cancel(UUID(attempt_id))
            elif "lost" in message:
                self.lose()
            elif "stop" in message:
                self.stop()
            elif "hurry" in message:
                self.hurry()

    def lose(self) -> None:
        """The lease is over, or about to be: stop everything, nothing that is written now will be accepted."""
        log.error("the lease could not be renewed: handlers are stopped before it ends")
        if self._claimer is not None:
            self._claimer.stopping = True
        self._executor.take_back()
        for attempt_id in list(self._executor.running):
            self._executor.abandon(attempt_id)
        self._stop.set()

    def take_counts(self) -> dict[str, Any]:
        """For metrics: what has happened since the last time, and how things are now."""
        counters = self.counters
        claimed, stale = counters.claimed, counters.stale
        before, self._counted = self._counted, (claimed, stale)
        return {
            "tally": (counters.tally or Tally()).take(),
            "claimed": claimed - before[0],
            "stale": stale - before[1],
            "running": len(self._executor.running),
            "waiting": self._executor.waiting,
            "lost_places": self._executor.lost_places,
        }

    def close(self) -> None:
        self._executor.close()
        self._claim_line.close()
        self._finish_line.close()

    async def wait_closed(self) -> None:
        """After `close`: until the processes of isolated handlers have ended."""
        await self._executor.wait_closed()

    def _ended(self, ending: Ending) -> None:
        if self._claimer is not None and ending.ran_seconds is not None:
            self._claimer.note_run_time(ending.attempt.lane, ending.ran_seconds)
        self._finisher.add(ending)

    def _hear_cancel(self, payload: str) -> None:
        worker, _, attempt = payload.partition("/")
        if worker == str(self.worker_id):
            self._executor.request_cancel(UUID(attempt))

    async def _until_stopped(self, claimer: Claimer) -> None:
        stopped = asyncio.create_task(self._stop.wait())
        lost = asyncio.create_task(claimer.lost.wait())
        try:
            await asyncio.wait({stopped, lost}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopped.cancel()
            lost.cancel()
        if claimer.lost.is_set():
            self.lose()

    async def _watch_lease(self) -> None:
        """The keeper tells of every renewal. When it is silent, because it is frozen, handlers stop all the same.

        Twice in a row, with a turn of the loop between: after a handler has blocked it, the good news may still be
        waiting to be read.
        """
        overdue = 0
        while overdue < SILENT_LOOKS:
            await asyncio.sleep(min(0.5, self._settings.lease_seconds / 20))
            silent = time.monotonic() - self._renewed > self._settings.lease_seconds * LEASE_MARGIN
            overdue = overdue + 1 if silent else 0
        self.lose()


def _listed(lanes: tuple[str, ...] | None) -> list[str] | None:
    return None if lanes is None else list(lanes)

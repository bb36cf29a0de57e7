"""Twice a second, for handlers that run longer than a moment: announces that they have started, writes their log lines
and progress, and asks what became of their attempts. A notification of a cancel makes it ask at once.
"""

import asyncio
import time
from collections.abc import Iterable, Sequence
from uuid import UUID

from fenceline.context.attempt import Attempt, Report
from fenceline.delivery.contract import AttemptNotice, Delivery
from fenceline.engine.executor import Executor
from fenceline.engine.running_attempt import RunningAttempt
from fenceline.errors import DatabaseBusy

MOMENT_SECONDS = 0.5
#: The pause between two checks that notifications called for, and how many attempts they may name meanwhile. Anybody
#: who may connect can send them; a cancel that is passed over is found by the heartbeat or the next check.
HINT_SECONDS = 0.05
MAX_HINTS = 10_000


class ProgressReporter:
    def __init__(self, executor: Executor, delivery: Delivery) -> None:
        self._executor = executor
        self._delivery = delivery
        self._late: set[asyncio.Task[None]] = set()
        #: How often to ask after an attempt when nothing calls for it.
        self.check_seconds = 7.5
        self._hints: set[UUID] = set()
        self._hinted = asyncio.Event()

    async def run(self) -> None:
        while True:
            await asyncio.sleep(MOMENT_SECONDS)
            await self.run_once()

    def hint(self, attempt_id: UUID) -> None:
        """A notification says that an attempt was cancelled; the database will be asked whether it was."""
        if len(self._hints) < MAX_HINTS:
            self._hints.add(attempt_id)
            self._hinted.set()

    async def follow_hints(self) -> None:
        while True:
            await self._hinted.wait()
            self._hinted.clear()
            hints, self._hints = self._hints, set()
            await self._ask_after([attempt for attempt in self._executor.places.held if attempt.attempt_id in hints])
            await asyncio.sleep(HINT_SECONDS)

    async def run_once(self) -> None:
        self._executor.end_overdue()
        await self.announce()
        await self.check()
        await self.report()

    async def announce(self) -> None:
        """Turn claimed into running."""
        now = time.perf_counter()
        new = [r for r in self._executor.places.running.values() if not r.announced and not r.waits_for_others]
        if not new:
            return
        for running in new:
            running.announced = True
            if running.check_at is None:
                running.check_at = time.monotonic() + self.check_seconds
        stale = await self._delivery.start([r.attempt for r in new], [now - r.started for r in new])
        self._abandon(stale)

    async def check(self) -> None:
        """Ask about attempts that may be gone or may have to stop: a forced cancel, a grace period that is over, a
        lane's stale timeout.
        """
        now = time.monotonic()
        due = [r for r in self._executor.places.running.values() if r.check_at is not None and r.check_at <= now]
        for running in due:
            running.check_at = now + self.check_seconds
        await self._ask_after([running.attempt for running in due])

    async def _ask_after(self, attempts: Sequence[Attempt]) -> None:
        if attempts:
            self.heed(await self._delivery.check(attempts))

    def heed(self, notices: Iterable[AttemptNotice]) -> None:
        """Stop the handlers of attempts that are gone, and ask those to stop that should."""
        for item in notices:
            if item.notice == "stale" and item.attempt_id in self._executor.places.running:
                self._executor.abandon(item.attempt_id)
            else:  # one that has not started will not
                self._executor.request_cancel(item.attempt_id, item.grace_seconds)

    async def report(self) -> None:
        """Write the lines and the progress of all at once."""
        telling = [
            running
            for running in self._executor.places.running.values()
            if running.session.has_report and not running.session.is_reporting
        ]
        if telling:
            await self._report([(running, running.session.begin_report()) for running in telling], patient=False)

    async def _report(self, reports: Sequence[tuple[RunningAttempt, Report]], *, patient: bool) -> None:
        stale: list[UUID] = []
        try:
            stale = await self._delivery.report([(r.attempt, report) for r, report in reports], patient=patient)
        except DatabaseBusy:
            # Another transaction holds one of them: each goes on its own, and nothing else waits for it.
            for report in reports:
                task = asyncio.create_task(self._report([report], patient=True))
                self._late.add(task)
                task.add_done_callback(self._late.discard)
            reports = ()
        finally:
            for running, _report in reports:
                running.session.end_report()
        self._abandon(stale)

    def _abandon(self, stale: Iterable[UUID]) -> None:
        for attempt_id in stale:
            self._executor.abandon(attempt_id)

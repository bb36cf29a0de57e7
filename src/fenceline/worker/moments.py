"""What is done twice a second for handlers that live longer than a moment: they are announced as started, their
lines and progress are written, and the database is asked what became of their attempts.
"""

import asyncio
import time

from fenceline.context.desk import RunCall
from fenceline.database import worker_calls
from fenceline.worker.executor import Executor
from fenceline.worker.finisher import send_reports

MOMENT_SECONDS = 0.5


class Moments:
    def __init__(self, executor: Executor, call: RunCall, *, check_seconds: float) -> None:
        """`check_seconds`: how often to ask after an attempt when nothing calls for it."""
        self._executor = executor
        self._call = call
        self._check_seconds = check_seconds

    async def run(self) -> None:
        while True:
            await asyncio.sleep(MOMENT_SECONDS)
            await self.run_once()

    async def run_once(self) -> None:
        self._executor.end_overdue()
        await self.announce()
        await self.check()
        await self.report()

    async def announce(self) -> None:
        """Turn claimed into running."""
        now = time.perf_counter()
        new = [e for e in self._executor.running.values() if not e.announced]
        if not new:
            return
        for execution in new:
            execution.announced = True
            if execution.check_at is None:
                execution.check_at = time.monotonic() + self._check_seconds
        stale = await self._call(
            worker_calls.start_attempts(
                [e.attempt.job_id for e in new],
                [e.attempt.attempt_id for e in new],
                [now - e.started for e in new],
            )
        )
        for _job_id, attempt_id in stale:
            self._executor.abandon(attempt_id)

    async def check(self) -> None:
        """Ask after attempts that may be gone or are asked to stop: a forced cancel, a grace that is over, a stale rule
        of the lane.
        """
        now = time.monotonic()
        due = [e for e in self._executor.running.values() if e.check_at is not None and e.check_at <= now]
        if not due:
            return
        for execution in due:
            execution.check_at = now + self._check_seconds
        words = await self._call(
            worker_calls.check_attempts([e.attempt.job_id for e in due], [e.attempt.attempt_id for e in due])
        )
        for attempt_id, word, grace_seconds in words:
            if word == "stale":
                self._executor.abandon(attempt_id)
            else:
                self._executor.request_cancel(attempt_id, grace_seconds)

    async def report(self) -> None:
        """Write the lines and the progress of all in one statement."""
        telling = [e for e in self._executor.running.values() if e.context.has_report]
        reports = [(e.attempt, e.context.begin_report()) for e in telling]
        try:
            stale = await send_reports(self._call, reports)
        finally:
            for execution in telling:
                execution.context.end_report()
        for attempt_id in stale:
            self._executor.abandon(attempt_id)

"""Sends the endings of attempts to the database, as many at a time as have come together.

No timer: while one batch is on its way the next one gathers. An ending that is refused is stale: its attempt was
reclaimed or cancelled meanwhile, and whoever holds the job now decides.
"""

import asyncio
import logging
from uuid import UUID

from fenceline.context.attempt import Attempt, Ending, Report
from fenceline.context.desk import RunCall
from fenceline.context.failure import describe
from fenceline.database import context_calls, worker_calls
from fenceline.database.calls import Row
from fenceline.errors import ConnectionLost, RefusedError, ResourceLocked
from fenceline.worker.settings import Counters

log = logging.getLogger("fenceline.worker")


class Finisher:
    def __init__(self, run: RunCall, counters: Counters) -> None:
        self._run = run
        self._counters = counters
        self._endings: list[Ending] = []
        self._news = asyncio.Event()
        self._empty = asyncio.Event()
        self._empty.set()

    def add(self, ending: Ending) -> None:
        self._endings.append(ending)
        if not self._news.is_set():
            self._news.set()
            self._empty.clear()

    async def run(self) -> None:
        while True:
            await self._news.wait()
            await self.run_once()

    async def run_once(self) -> None:
        """Send what has gathered."""
        endings, self._endings = self._endings, []
        if endings:
            await self._send(endings)
        if not self._endings:
            self._news.clear()
            self._empty.set()

    async def flushed(self) -> None:
        """Wait until everything added so far is in the database."""
        await self._empty.wait()

    async def _send(self, endings: list[Ending]) -> None:
        await self._report([ending for ending in endings if ending.report is not None])
        written = [ending for ending in endings if ending.is_written]
        if written:
            self._note_sent(written, [])
            endings = [ending for ending in endings if not ending.is_written]
            if not endings:
                return
        if any(ending.outcome == "crashed" for ending in endings):
            for ending in [ending for ending in endings if ending.outcome == "crashed"]:
                await self._send_crashed(ending)
            endings = [ending for ending in endings if ending.outcome != "crashed"]
            if not endings:
                return
        try:
            refused = await self._run(worker_calls.finish_attempts(_columns(endings)))
        except RefusedError as error:
            if len(endings) == 1:
                await self._send_refused(endings[0], error)
                return
            # One of them cannot be stored; the others must not suffer for it.
            for ending in endings:
                await self._send([ending])
            return
        self._note_sent(endings, refused)

    def _note_sent(self, endings: list[Ending], refused: list[Row]) -> None:
        for ending in endings:
            self._counters.ended[ending.outcome] = self._counters.ended.get(ending.outcome, 0) + 1
        stale = {attempt_id for attempt_id, verdict in refused if verdict == "stale"}
        for attempt_id in stale:
            self._counters.stale += 1
            log.warning("stale_attempt: the ending of attempt %s was refused", attempt_id)
        if self._counters.tally is not None:
            for ending in endings:
                if ending.attempt.attempt_id not in stale:
                    self._counters.tally.note(ending)

    async def _report(self, endings: list[Ending]) -> None:
        """Lines and progress go before the end: after it they would be stale."""
        reports = [(ending.attempt, ending.report) for ending in endings if ending.report is not None]
        for ending in endings:
            ending.report = None
        await send_reports(self._run, reports)

    async def _send_crashed(self, ending: Ending) -> None:
        """The job killed the process that it had to itself."""
        attempt = ending.attempt
        verdict = await self._run(worker_calls.crash_attempt(attempt.job_id, attempt.attempt_id, ending.error))
        self._counters.ended["crashed"] = self._counters.ended.get("crashed", 0) + 1
        if verdict == "stale":
            self._counters.stale += 1
            log.warning("stale_attempt: the ending of attempt %s was refused", attempt.attempt_id)
        elif self._counters.tally is not None:
            self._counters.tally.note(ending)

    async def _send_refused(self, ending: Ending, error: RefusedError) -> None:
        log.error("job %s: its ending was refused, so it fails: %s", ending.attempt.id, error)
        # A resource that a child needs may be free the next time; nothing else will fit better then.
        outcome = "failed" if isinstance(error, ResourceLocked) else "failed_for_good"
        failed = Ending(ending.attempt, outcome=outcome, error=describe(error, code=error.code))
        failed.ran_seconds = ending.ran_seconds
        self._note_sent([failed], await self._run(worker_calls.finish_attempts(_columns([failed]))))


async def send_reports(run: RunCall, reports: list[tuple[Attempt, Report]]) -> list[UUID]:
    """Write log lines and progress of attempts, all in one statement; the attempts that are stale."""
    if not reports:
        return []
    try:
        return await run(
            context_calls.report_attempts(
                [attempt.job_id for attempt, _report in reports],
                [attempt.attempt_id for attempt, _report in reports],
                [report.lines or None for _attempt, report in reports],
                [report.progress for _attempt, report in reports],
            )
        )
    except RefusedError as error:
        if len(reports) == 1:
            log.warning("job %s: lines of its log are lost: %s", reports[0][0].id, error)
            return []
        # One of them cannot be stored; the others must not suffer for it.
        return [stale for report in reports for stale in await send_reports(run, [report])]
    except ConnectionLost as error:
        log.warning("lines of the logs of %s jobs may be lost: %s", len(reports), error)
        return []


def _columns(endings: list[Ending]) -> list[list[object] | None]:
    """One list per parameter; a parameter that nobody uses is not sent at all."""

    def column(values: list[object]) -> list[object] | None:
        return values if any(value is not None for value in values) else None

    return [
        [e.attempt.job_id for e in endings],
        [e.attempt.attempt_id for e in endings],
        [e.outcome for e in endings] if any(e.outcome != "succeeded" for e in endings) else None,
        column([e.result for e in endings]),
        column([e.error for e in endings]),
        column([e.errors for e in endings]),
        column([e.delay for e in endings]),
        column([e.ran_seconds for e in endings]),
    ]

"""Sends the endings of attempts to the database, as many at a time as have come together.

No timer: while one batch is on its way the next one gathers. An ending that is refused is stale: its attempt was
reclaimed or cancelled meanwhile, and whoever holds the job now decides.
"""

import asyncio
import logging
from collections.abc import Awaitable
from typing import Protocol, TypeVar

from fenceline.database import worker_calls
from fenceline.database.calls import Call, Row
from fenceline.errors import ConnectionLost, RefusedError
from fenceline.worker.attempt import Ending
from fenceline.worker.failure import describe
from fenceline.worker.settings import Counters

T = TypeVar("T")

log = logging.getLogger("fenceline.worker")


class RunCall(Protocol):
    def __call__(self, call: Call[T], /) -> Awaitable[T]: ...


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
        for ending in endings:
            if ending.lines:
                await self._write_lines(ending)
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

    async def _write_lines(self, ending: Ending) -> None:
        lines, ending.lines = ending.lines or [], None
        try:
            await self._run(worker_calls.write_log(ending.attempt.job_id, ending.attempt.attempt_id, lines))
        except (ConnectionLost, RefusedError) as error:
            log.warning("job %s: lines of its log are lost: %s", ending.attempt.id, error)

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
        await self._run(
            worker_calls.finish_attempts(
                _columns([Ending(ending.attempt, outcome="failed_for_good", error=describe(error, code=error.code))])
            )
        )


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

"""Tells the database that handlers are about to start, where it must know before they do: when the attempt is the job's
last, and when an earlier one was lost without a word of its start.

An attempt that is lost without that word has not run, and is refunded. All other starts are told afterwards, if at all
(`progress_reporter`), and cost nothing.

What has been told counts, whether its handler then comes to run or the machine dies first. So no more are told at a
time than start within a moment: handlers that keep the loop to themselves are told one by one, those that soon wait
for something by the dozen.
"""

import asyncio
import time

from fenceline.context.attempt import Attempt
from fenceline.delivery.contract import Delivery

#: Between the database's answer and the start of the last handler that it was told of.
MOMENT_SECONDS = 0.0005
MAX_AT_ONCE = 100


class Starts:
    def __init__(self, delivery: Delivery) -> None:
        self._delivery = delivery
        self._waiting: list[tuple[Attempt, asyncio.Future[bool]]] = []
        self._changed = asyncio.Event()
        self._at_once = 1
        self._answered = 0.0
        self._yet_to_start = 0

    async def report(self, attempt: Attempt) -> bool:
        """Tell of one start; False: the attempt is gone, and must not start."""
        told: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting.append((attempt, told))
        self._changed.set()
        try:
            return await told
        finally:
            self._starts(told)

    async def run(self) -> None:
        while True:
            await self._changed.wait()
            await self.run_once()

    async def run_once(self) -> None:
        """Tell of as many as start within a moment."""
        now, self._waiting = self._waiting[: self._at_once], self._waiting[self._at_once :]
        if not self._waiting:
            self._changed.clear()
        starting = [(attempt, told) for attempt, told in now if not told.done()]
        if not starting:
            return
        gone = await self._delivery.start([attempt for attempt, _told in starting], [0.0] * len(starting))
        self._answered = time.perf_counter()
        for attempt, told in starting:
            if not told.done():
                self._yet_to_start += 1
                told.set_result(attempt.attempt_id not in gone)

    def _starts(self, told: "asyncio.Future[bool]") -> None:
        """One that was told of starts now; the last of them shows whether they were too many."""
        if not told.done() or told.cancelled():
            return
        self._yet_to_start -= 1
        if self._yet_to_start == 0:
            took = time.perf_counter() - self._answered
            self._at_once = max(1, self._at_once // 2) if took > MOMENT_SECONDS else min(MAX_AT_ONCE, self._at_once + 1)

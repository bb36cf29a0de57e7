"""Reports to the database that handlers are about to start, where it must know first: when the attempt is the job's
last, and when an earlier attempt was lost before its start was known.

An attempt that is lost before its start is reported has not run, and is refunded. All other starts are reported
afterwards, if at all (`progress_reporter`), and cost nothing.

A reported start counts even if the machine dies before the handler runs. So no more are reported at a time than will
start within a moment: handlers that keep the loop to themselves one by one, handlers that soon await something by the
dozen.
"""

import asyncio
import time

from fenceline.context.attempt import Attempt
from fenceline.delivery.contract import Delivery

#: How long after the database's answer the last of the reported handlers may start.
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
        """Report one start; False: the attempt is gone, and must not start."""
        known: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting.append((attempt, known))
        self._changed.set()
        try:
            return await known
        finally:
            self._starts(known)

    async def run(self) -> None:
        while True:
            await self._changed.wait()
            await self.run_once()

    async def run_once(self) -> None:
        """Report as many as start within a moment."""
        now, self._waiting = self._waiting[: self._at_once], self._waiting[self._at_once :]
        if not self._waiting:
            self._changed.clear()
        starting = [(attempt, known) for attempt, known in now if not known.done()]
        if not starting:
            return
        gone = await self._delivery.start([attempt for attempt, _known in starting], [0.0] * len(starting))
        self._answered = time.perf_counter()
        for attempt, known in starting:
            if not known.done():
                self._yet_to_start += 1
                known.set_result(attempt.attempt_id not in gone)

    def _starts(self, known: "asyncio.Future[bool]") -> None:
        """A reported attempt starts now; the last of a batch shows whether the batch was too large."""
        if not known.done() or known.cancelled():
            return
        self._yet_to_start -= 1
        if self._yet_to_start == 0:
            took = time.perf_counter() - self._answered
            self._at_once = max(1, self._at_once // 2) if took > MOMENT_SECONDS else min(MAX_AT_ONCE, self._at_once + 1)

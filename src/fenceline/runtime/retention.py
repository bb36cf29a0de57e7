"""Deletes jobs that are past their retention, in small transactions, until none are left.

One look finds many jobs, which are then deleted in batches. Whoever got the turn spends a share of every second on it
until nothing is left, so a fleet keeps up with what it finishes without slowing down.
"""

import time

from fenceline.database import calls
from fenceline.database.call import RunCall

#: How many jobs one look finds, and one transaction deletes.
LOOK_JOBS = 20_000
BATCH_JOBS = 500
#: How many of their log lines and other rows one transaction deletes.
BATCH_ROWS = 10_000


class Retention:
    """Call `begin` when a round is due, then `work` again and again."""

    def __init__(self, call: RunCall) -> None:
        self._call = call
        self._days = False  # whether there are days left to look at
        self._looks = False  # whether to look for more jobs after `_jobs`
        self._jobs: list[int] = []

    def begin(self) -> None:
        self._days = True

    async def work(self, seconds: float) -> int:
        """Delete for about so long; returns how many jobs it was."""
        forgotten = 0
        until = time.monotonic() + seconds
        try:
            while (self._days or self._looks or self._jobs) and time.monotonic() < until:
                forgotten += await self._step()
        except BaseException:
            self._stop()  # until the next round
            raise
        return forgotten

    async def _step(self) -> int:
        if self._days:
            done = await self._call(calls.upkeep.drop_days(BATCH_ROWS))
            self._days = bool(done.jobs or done.more)
            self._looks = not self._days
        elif self._jobs:
            done = await self._call(calls.upkeep.forget_finished(self._jobs[:BATCH_JOBS], BATCH_ROWS))
            if not done.more:
                del self._jobs[:BATCH_JOBS]
        else:
            self._jobs = await self._call(calls.upkeep.jobs_to_forget(LOOK_JOBS))
            self._looks = len(self._jobs) == LOOK_JOBS
            return 0
        if done.jobs is None:
            self._stop()  # somebody else is doing it
        return done.jobs or 0

    def _stop(self) -> None:
        self._days = self._looks = False
        self._jobs = []

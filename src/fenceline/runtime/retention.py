"""Forgets what is past its retention, in small transactions, for as long as there is something.

One look finds many jobs; they are then forgotten in portions. Whoever got the turn goes on until nothing is left, a
share of every second, so that a fleet keeps up with whatever it finishes, and nobody notices.
"""

import time

from fenceline.database import calls
from fenceline.database.call import RunCall

#: Found with one look, and forgotten in one transaction.
LOOK_JOBS = 20_000
BATCH_JOBS = 500
#: Log lines and the like in one transaction.
BATCH_ROWS = 10_000


class Retention:
    """Call `begin` when it is time, then `work` until it says that there is nothing left."""

    def __init__(self, call: RunCall) -> None:
        self._call = call
        self._days = False  # whether days are still to be looked at
        self._looks = False  # whether to look for more jobs when `_jobs` are done
        self._jobs: list[int] = []

    def begin(self) -> None:
        self._days = True

    async def work(self, seconds: float) -> int:
        """Forget for about so long; returns how many jobs."""
        forgotten = 0
        until = time.monotonic() + seconds
        try:
            while (self._days or self._looks or self._jobs) and time.monotonic() < until:
                forgotten += await self._step()
        except BaseException:
            self._stop()  # begun anew at the next turn
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
            self._stop()  # somebody else is at it
        return done.jobs or 0

    def _stop(self) -> None:
        self._days = self._looks = False
        self._jobs = []

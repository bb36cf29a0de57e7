"""The fleet's maintenance, done by whoever gets there first: every worker and every server runs it.

One statement (`fenceline.maintain`) does what is due, once per interval for the whole fleet however many ask; another
(`fenceline.upkeep`), about once a minute, what takes longer: partitions and retention.
"""

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from fenceline.client.scheduler import Scheduler
from fenceline.database import worker_calls
from fenceline.database.calls import Call

log = logging.getLogger("fenceline.maintenance")

MAINTENANCE_SECONDS = 1.0
#: Timers that are due within so long of each other are promoted together.
TIMER_SECONDS = 0.05
UPKEEP_SECONDS = 60.0


class Maintenance:
    """`call` runs a statement; it may take its time, so it should not be one that others wait for."""

    def __init__(self, call: Callable[[Call[Any]], Awaitable[Any]]) -> None:
        self._call = call
        self._scheduler = Scheduler(call)
        self._upkeep_at = 0.0  # the monotonic time of our next look

    async def run(self) -> None:
        """Until cancelled: whatever goes wrong once is tried again."""
        interval = MAINTENANCE_SECONDS / 2
        while True:
            done = None
            try:
                done = await self.run_once(interval)
            except Exception:
                log.exception("maintenance failed")
            # Somebody in the fleet has to; who did not get a turn looks less often.
            pause = (2 if done is None else 1) * MAINTENANCE_SECONDS * random.uniform(0.8, 1.0)  # noqa: S311 - jitter
            interval = MAINTENANCE_SECONDS / 2
            if done is not None and done.next_seconds is not None and done.next_seconds < pause:
                # A timer or a schedule is due before that: be there in time, and do not take our own last turn for a
                # reason to wait.
                pause = max(done.next_seconds, 0.0) + TIMER_SECONDS
                interval = TIMER_SECONDS / 2
            await asyncio.sleep(pause)

    async def run_once(self, interval_seconds: float = MAINTENANCE_SECONDS / 2) -> worker_calls.Maintained | None:
        """Do the fleet's maintenance if nobody else has just done it, and fire the schedules that are due."""
        done: worker_calls.Maintained | None = await self._call(
            worker_calls.maintain(interval_seconds=interval_seconds)
        )
        if done is not None and done.schedules_due:
            round_ = await self._scheduler.run_once()
            waits = [seconds for seconds in (done.next_seconds, round_.next_seconds) if seconds is not None]
            done = replace(done, next_seconds=min(waits, default=None))
        if done is not None and done.limits_tenants:
            await self._call(worker_calls.count_tenants())
        if time.monotonic() >= self._upkeep_at:
            # After what is urgent, and in a transaction of its own.
            self._upkeep_at = time.monotonic() + UPKEEP_SECONDS
            await self._call(worker_calls.upkeep(interval_seconds=UPKEEP_SECONDS))
        return done
